"""What a model does may depend on its input; every path must be drawn in full."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from caveat import MCDropout
from caveat.errors import CaveatWarning
from tests.sampling.comparing import assert_same_distribution
from tests.zoo.plain_loop import own_randomness
from tests.zoo.specimen import normal

N_DRAWS = 300


class Gated(nn.Module):
    """Dropout that is not even called outside training."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.5) if self.training else x


class TwoPaths(nn.Module):
    """A little dropout always, and much of it on one of two paths."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(5, 8), nn.Linear(8, 2)
        self.drop, self.gated = nn.Dropout(0.1), Gated()

    def noisy(self, x: Tensor) -> bool:
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        h = self.drop(self.first(x))
        if self.noisy(x):
            h = self.gated(h)
        return self.last(h).flatten(1)


class BySign(TwoPaths):
    def noisy(self, x):
        return bool(x.mean() > 0)


class ByLength(TwoPaths):
    def noisy(self, x):
        return x.shape[1] > 4


class ByMode(TwoPaths):
    """The path is set by an attribute, as adapters and heads are switched."""

    mode = "quiet"

    def noisy(self, x):
        return self.mode == "noisy"


def build(kind: type[TwoPaths]) -> TwoPaths:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return kind().eval()


def assert_drawn_in_full(draws: Tensor, model: nn.Module, x: Tensor) -> None:
    model.train()
    with own_randomness(1), torch.no_grad():
        plain = torch.stack([model(x) for _ in range(N_DRAWS)])
    assert_same_distribution([draws], [plain])


POSITIVE, NEGATIVE = normal(4, 5).abs(), -normal(4, 5).abs()


@pytest.mark.parametrize("first", [None, NEGATIVE], ids=["at once", "later"])
def test_path_chosen_by_value(first):
    model = build(BySign)
    mc = MCDropout(model, seed=0)
    if first is not None:
        mc.draws(first, n_draws=2)
    assert_drawn_in_full(mc.draws(POSITIVE, n_draws=N_DRAWS), model, POSITIVE)


def test_path_chosen_by_the_whole_batch():
    """The first rows alone would go the other way."""
    model = build(BySign)
    x = torch.cat([0.1 * NEGATIVE, 5 * POSITIVE])
    with pytest.warns(CaveatWarning, match="where the rows lie at gated"):
        draws = MCDropout(model, seed=0).draws(x, n_draws=N_DRAWS)
    assert_drawn_in_full(draws, model, x)


def test_masks_of_a_path_seen_later_are_shared_by_rows():
    model, other = build(BySign), build(BySign)
    MCDropout(model, seed=0).draws(NEGATIVE, n_draws=2)
    found, expected = (
        MCDropout(m, seed=0).draws(POSITIVE, n_draws=20) for m in (model, other)
    )
    assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("first", [None, 3], ids=["at once", "later"])
def test_path_chosen_by_length(first):
    model = build(ByLength)
    mc = MCDropout(model, seed=0)
    if first is not None:
        mc.draws(normal(4, first, 5), n_draws=2)
    x = normal(4, 6, 5)
    assert_drawn_in_full(mc.draws(x, n_draws=N_DRAWS), model, x)


def test_path_chosen_by_an_attribute():
    model = build(ByMode)
    mc = MCDropout(model, seed=0)
    mc.draws(POSITIVE, n_draws=2)
    model.mode = "noisy"
    assert_drawn_in_full(mc.draws(POSITIVE, n_draws=N_DRAWS), model, POSITIVE)


def test_path_of_one_batch_among_many():
    """Each batch of a loader goes its own way."""
    model = build(BySign)
    draws = MCDropout(model, seed=0).draws([NEGATIVE, POSITIVE], n_draws=N_DRAWS)
    assert_drawn_in_full(draws[:, 4:], model, POSITIVE)


def test_rate_changed_later():
    model = build(BySign)
    mc = MCDropout(model, seed=0)
    mc.draws(NEGATIVE, n_draws=2)
    model.drop.p = 0.6
    assert_drawn_in_full(mc.draws(NEGATIVE, n_draws=N_DRAWS), model, NEGATIVE)


def test_hook_added_later():
    model = build(BySign)
    mc = MCDropout(model, seed=0)
    mc.draws(NEGATIVE, n_draws=2)
    model.last.register_forward_hook(lambda module, args, output: 10 * output)
    assert_drawn_in_full(mc.draws(NEGATIVE, n_draws=N_DRAWS), model, NEGATIVE)
