"""A graph that answers otherwise, or draws otherwise, is found out."""

import pytest
import torch
from torch import nn

import caveat
from caveat.errors import UnsupportedModelError
from caveat.exporting.checking import check_answers, check_noise
from caveat.exporting.subjects import Question, SampledSubject
from caveat.exporting.tracing import sites_of
from caveat.sampling.plans import plan_for

NET = nn.Sequential(nn.Linear(3, 6), nn.Dropout(0.4), nn.Linear(6, 2)).eval()
X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


def subject(*outputs: str) -> SampledSubject:
    asked = Question(outputs, "probs" in outputs, None, 0.95, None, None)
    return SampledSubject(caveat.MCDropout(NET, seed=1), asked)


@pytest.mark.parametrize("wrong", ["seed", "n_draws", "value", "shape"])
def test_any_other_answer_is_an_error(wrong):
    own = subject("mean")

    def run(batch, seed, n_draws):
        seed += wrong == "seed"
        n_draws += wrong == "n_draws"
        mean = own.truth(batch, seed, n_draws)["mean"]
        mean = mean + 1e-3 if wrong == "value" else mean
        return [mean[:1] if wrong == "shape" else mean]

    with pytest.raises(UnsupportedModelError, match="'mean' differs"):
        check_answers(own, own.batch(X), ("mean",), run)


def test_the_same_answers_pass():
    own = subject("probs", "label")
    names = ("probs", "label")
    check_answers(own, own.batch(X), names, lambda *call: own.truth(*call).values())


def test_a_bit_of_a_mask_is_an_error():
    own = subject("mean")
    batch = own.batch(X)
    sites = sites_of(own.sampler, batch, plan_for(NET, batch))
    drawn = sites[0].spec.sample(1, range(3))
    check_noise(own, sites, [drawn], range(3))
    drawn[2, 0, 5] = 1 / 0.6 - drawn[2, 0, 5]
    with pytest.raises(UnsupportedModelError, match="noise at '1#0'"):
        check_noise(own, sites, [drawn], range(3))
