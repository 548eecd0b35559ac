"""A formula that draws contradict is noticed; the truth never is."""

import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat.errors import CaveatWarning, UnsupportedModelError
from caveat.sampling.closed_form import last_layer, readings
from caveat.sampling.closed_form.beliefs import Independent
from caveat.sampling.closed_form.checking import contradicted
from caveat.sampling.closed_form.laws import law_excess
from caveat.sampling.noise import Mask
from tests.sampling.closed_form.nets import numbers, seeded


def net(rate: float = 0.5) -> nn.Module:
    return seeded(
        lambda: nn.Sequential(nn.Linear(3, 8), nn.Dropout(rate), nn.Linear(8, 2))
    )


def draws_of_one_unit(rate: float, n_draws: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    kept = torch.rand(n_draws, 1, 1, generator=generator) >= rate
    return kept.double() / (1.0 - rate)


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("n_draws", [32, 100, 1000])
def test_the_truth_is_not_contradicted(rate, n_draws):
    """One unit alone is the worst case; the chance of an alarm is below 1e-9 a call."""
    variance = torch.full((1, 1), rate / (1.0 - rate))
    excess = law_excess(Mask(1.0 - rate))
    for seed in range(200):
        draws = draws_of_one_unit(rate, n_draws, seed)
        own = (draws.mean(0), draws.var(0, correction=0), n_draws)
        assert not contradicted(torch.ones(1, 1), variance, *own, excess)


@pytest.mark.parametrize("factor", [4.0, 0.1])
def test_a_variance_off_by_a_factor_is(factor):
    x = torch.randn(200, 3, 2, generator=torch.Generator().manual_seed(0)).double()
    own = (x.mean(0), x.var(0), 200)
    zero, one = torch.zeros(3, 2), torch.ones(3, 2)
    assert not contradicted(zero, one, *own, 0.0)
    assert contradicted(zero, one / factor, *own, 0.0)
    assert contradicted(one * 2.0, one, *own, 0.0)


def wrong(self):
    mean = self.conditional_mean(self.constant)
    return Independent(mean, frozenset(), True, torch.full_like(mean, 1e-4))


def test_draws_are_used_in_place_of_a_wrong_formula(monkeypatch):
    monkeypatch.setattr(last_layer.LastLayer, "exact", wrong)
    x = numbers(4, 3)
    with pytest.warns(CaveatWarning, match=r"closed form .* contradicts"):
        found = MCDropout(net(), seed=0).regress(x, precision=1.0, n_draws=100)
    assert not found.exact
    right = MCDropout(net(), seed=0, analytic=False)
    expected = right.regress(x, precision=1.0, n_draws=100)
    assert torch.equal(found.variance, expected.variance)
    assert readings.EXACT != found.method


def test_wrong_moments_are_an_error(monkeypatch):
    def linear(self, weight, bias):
        mean = nn.functional.linear(self.mean, weight, bias)
        return Independent(mean, self.sources, True, torch.full_like(mean, 1e-4))

    monkeypatch.setattr(Independent, "linear", linear)
    with pytest.raises(UnsupportedModelError, match="contradicts"):
        MCDropout(net(), seed=0).moments(numbers(4, 3))
