"""Generators of any kind: seeded ones stay as the model wants, none of them moves."""

import random

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import caveat
from caveat import MCDropout
from caveat.errors import NoStochasticSiteError
from tests.sampling.comparing import SEED, draws_of
from tests.zoo import generators
from tests.zoo.models import BY_NAME
from tests.zoo.specimen import normal

X = normal(4, 5)
NAMES = [specimen.name for specimen in generators.SPECIMENS]


def states(model: nn.Module) -> list[object]:
    """Of every generator that a model of the zoo may use."""
    found = [torch.get_rng_state().tolist(), random.getstate()]
    found.append(np.random.get_state()[1].tolist())  # noqa: NPY002
    found.append(generators.OUTSIDE.get_state().tolist())
    config, coins = getattr(model, "config", model), getattr(model, "coins", {})
    for value in (*vars(model).values(), *vars(config).values(), *coins.values()):
        if isinstance(value, torch.Generator):
            found.append(value.get_state().tolist())
        elif isinstance(value, random.Random):
            found.append(value.getstate())
        elif isinstance(value, np.random.Generator):
            found.append(str(value.bit_generator.state))
        elif isinstance(value, np.random.RandomState):
            found.append(value.get_state()[1].tolist())
    return found


CALLS = {
    "draws": lambda model: MCDropout(model, seed=0).draws(X, n_draws=3),
    "function": lambda model: MCDropout(model, seed=0).function(1)(X),
    "audit": lambda model: caveat.audit(model, X),
}


@pytest.mark.filterwarnings("ignore:The rows of")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_no_generator_moves(name, call):
    model = BY_NAME[name].build()
    before = states(model)
    assert len(before) > 3
    call(model)
    assert states(model) == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.filterwarnings("ignore:The rows of")
def test_the_past_of_the_generators_does_not_matter(name, seed):
    """Nor that torch was given the very seed that the model will give it."""
    expected = draws_of(BY_NAME[name], 3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = draws_of(BY_NAME[name], 3)
    assert all(map(torch.equal, found, expected))


class SeedsAll(nn.Module):
    """Seeds torch at the start: every pass is the same, dropout and all."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        torch.manual_seed(0)
        return self.last(F.dropout(x, 0.5, self.training))


def test_a_model_that_seeds_all_its_noise_has_none():
    model, torch_before = SeedsAll(), torch.get_rng_state()
    with pytest.raises(NoStochasticSiteError):
        MCDropout(model).draws(X, n_draws=2)
    assert torch.equal(torch.get_rng_state(), torch_before)


class MentionsSeeds(SeedsAll):
    """Could seed, but does not: nothing is lost by asking."""

    seed = None

    def forward(self, x: Tensor) -> Tensor:
        if self.seed is not None:
            torch.manual_seed(self.seed)
        return self.last(F.dropout(x, 0.5, self.training))


def test_a_seed_set_later():
    model = MentionsSeeds()
    assert MCDropout(model, seed=SEED).draws(X, n_draws=20).std(0).max() > 0
    model.seed = 3
    with pytest.raises(NoStochasticSiteError):
        MCDropout(model, seed=SEED).draws(X, n_draws=20)


class AlwaysSkips(generators.OwnPython):
    """A coin of its own in evaluation, too, and one of Python's."""

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        for layer in self.layers:
            h = h if self.skip() or random.random() < 0.2 else layer(h)
        return self.last(h)


SKIPS = pytest.mark.filterwarnings("ignore:AlwaysSkips draws noise for this batch")


@SKIPS
def test_coins_in_evaluation():
    model = AlwaysSkips().eval()
    before = states(model)
    draws = MCDropout(model, seed=SEED).draws(X, n_draws=30)
    assert draws.std(0).max() > 0
    assert torch.equal(MCDropout(model, seed=SEED).draws(X, n_draws=30), draws)
    assert states(model) == before


@SKIPS
def test_an_audit_says_what_its_table_cannot_show():
    notes = caveat.audit(AlwaysSkips().eval(), X).notes
    assert any("generator of Python or numpy" in note for note in notes)
    assert not caveat.audit(nn.Sequential(nn.Linear(5, 2), nn.Dropout(0.5)), X).notes


class SeedsLate(SeedsAll):
    """Dropout, then a seed that nothing undoes."""

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(x, 0.5, self.training)
        torch.manual_seed(0)
        return self.last(h) + torch.randn(2)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_seed_that_is_not_undone(call):
    model = SeedsLate()
    before = states(model)
    call(model)
    assert states(model) == before


def test_a_seed_comes_after_noise():
    """What is drawn before the seed is noise; what comes after is as in torch."""
    model = SeedsLate()
    draws = MCDropout(model, seed=SEED).draws(X, n_draws=400)
    generator = torch.Generator().manual_seed(0)
    expected = model.last(X) + torch.randn(2, generator=generator)
    assert torch.allclose(draws.mean(0), expected, atol=6 * draws.std().item() / 20)
