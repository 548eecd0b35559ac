"""A drawn number compared with a bound that it cannot cross is as good as not drawn.

As long as it is raw: see ``caveat.sampling.raw``.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import caveat
from caveat.errors import NoStochasticSiteError
from caveat.sampling.inputs import Batch

X = torch.linspace(-1, 1, 12).view(4, 3)


class Asks(nn.Module):
    """Decides in Python by what ``question`` says."""

    def __init__(self, question: Callable, *, drops: bool = True, gated: bool = False):
        super().__init__()
        self.first, self.last = nn.Linear(3, 8), nn.Linear(8, 2)
        self.question, self.drops, self.gated = question, drops, gated
        self.register_buffer("rate", torch.tensor(0.0))
        self.register_buffer("memory", torch.full((3,), -1.0))
        self.register_buffer("loose", torch.tensor([0.2], dtype=torch.float64))

    def forward(self, x):
        h = self.first(x)
        asks = self.training or not self.gated
        if asks and self.question(self):
            h = h + 10.0
        return self.last(F.dropout(h, 0.5, self.training) if self.drops else h)


def partly_uniform(model: nn.Module) -> Tensor:
    kept = torch.full((4,), -1.0)
    kept[:2].uniform_()
    return (kept < 0).all()


def moved(model: nn.Module, into: Callable[[Tensor], Tensor] = lambda x: x) -> Tensor:
    drawn = torch.rand(2)
    into(drawn).sub_(0.5)
    return (drawn < 0).all()


def kept_in_a_buffer(model: nn.Module) -> Tensor:
    model.memory.uniform_()
    model.memory.sub_(0.5)
    return (model.memory < 0).all()


NEVER = {
    "rand < 0": lambda m: torch.rand([]) < 0.0,
    "rand > 1": lambda m: torch.rand([]) > 1,
    "not rand >= 0": lambda m: not torch.rand(1) >= 0,
    "not rand.le(1)": lambda m: not torch.rand([]).le(1),
    "not rand < 1": lambda m: not torch.rand([]) < 1.0,
    "rand of doubles >= 1": lambda m: torch.rand([], dtype=torch.float64) >= 1,
    "0 > rand": lambda m: torch.rand([]) < 0,
    "rand < nan": lambda m: torch.rand([]) < float("nan"),
    "torch.greater": lambda m: torch.greater(torch.rand([]), 1.5),
    "torch.less_equal": lambda m: torch.less_equal(torch.rand([]), -0.1),
    "rand_like": lambda m: (torch.rand_like(m.memory) < 0).any(),
    "a view": lambda m: (torch.rand(4, 1)[2].view(1, 1) < 0).any(),
    "a part": lambda m: (torch.rand(4).chunk(2)[1] < 0).any(),
    "uniform_": lambda m: torch.empty(1).uniform_(0, 1) < 0,
    "uniform_ of other bounds": lambda m: torch.empty(3).uniform_(2, 3)[1] < 2,
    "exponential_": lambda m: torch.empty(1).exponential_() < 0,
    "randint": lambda m: torch.randint(3, (1,)) > 2,
    "bernoulli with p": lambda m: torch.bernoulli(torch.ones(3), 0.0).any(),
    "bernoulli_": lambda m: not torch.empty(1).bernoulli_(1.0),
}

NEVER_BY_TENSOR = {
    "rand < buffer": lambda m: torch.rand([]) < m.rate,
    "buffer > rand": lambda m: m.rate > torch.rand(1),
    "bernoulli of 0": lambda m: torch.bernoulli(torch.zeros(())),
    "bernoulli of 1": lambda m: not torch.bernoulli(torch.ones(1)),
    "bernoulli_ by a tensor": lambda m: torch.empty(5).bernoulli_(m.rate).any(),
}
ALL_NEVER = NEVER | NEVER_BY_TENSOR

SOMETIMES = {
    "rand < 0.3": lambda m: torch.rand([]) < 0.3,
    "rand > 0.99": lambda m: torch.rand([]) > 0.99,
    "normal": lambda m: torch.randn([]) < -9,
    "rand - 0.5 < 0": moved,
    "a part moved": lambda m: moved(m, lambda drawn: drawn[0]),
    "partly drawn": partly_uniform,
    "kept in a buffer": kept_in_a_buffer,
    "of a product": lambda m: torch.rand([]) * 2 > 1,
    "two drawn numbers": lambda m: torch.rand([]) < torch.rand([]),
    "a drawn bound": lambda m: torch.rand([]) < F.dropout(torch.ones([]), 0.5),
    "a number in Python": lambda m: torch.rand([]).item() < 0,
    "a rounded end": lambda m: torch.empty(1).uniform_(0.1, 0.2) <= m.loose,
}


def is_certain(question: Callable, *, gated: bool) -> bool:
    """Whether all draws go one way, whatever is drawn."""
    mc = caveat.MCDropout(Asks(question, gated=gated).eval(), seed=0)
    batch = Batch.of((X,), {}, axis=0)
    return mc._sampler.session(batch).way is not None


@pytest.mark.parametrize("gated", [False, True], ids=["always", "in training"])
@pytest.mark.parametrize("question", ALL_NEVER.values(), ids=ALL_NEVER)
def test_certain_outcomes_are_not_drawn(question, gated):
    assert is_certain(question, gated=gated)
    plain = Asks(lambda m: False).eval()
    asking = Asks(question, gated=gated).eval()
    asking.load_state_dict(plain.state_dict())
    draws = [caveat.MCDropout(m, seed=3).draws(X, n_draws=5) for m in (plain, asking)]
    assert torch.equal(*draws)  # the numbers of other sites do not change either
    with caveat.stochastic(asking, seed=3):  # above autograd
        assert torch.allclose(asking(X), draws[0][0], atol=1e-6)


@pytest.mark.parametrize("question", ALL_NEVER.values(), ids=ALL_NEVER)
def test_certain_outcomes_alone_are_no_randomness(question):
    with pytest.raises(NoStochasticSiteError):
        caveat.MCDropout(Asks(question, drops=False)).draws(X, n_draws=2)


@pytest.mark.parametrize("gated", [False, True], ids=["always", "in training"])
@pytest.mark.parametrize("question", NEVER.values(), ids=NEVER)
def test_certain_outcomes_are_no_sites(question, gated):
    (site,) = caveat.audit(Asks(question, gated=gated), X)
    assert (site.kind, site.rate) == ("dropout", 0.5)


@pytest.mark.parametrize("gated", [False, True], ids=["always", "in training"])
@pytest.mark.parametrize("question", SOMETIMES.values(), ids=SOMETIMES)
def test_other_outcomes_are_drawn(question, gated):
    assert not is_certain(question, gated=gated)


class Uses(nn.Module):
    """Compares its numbers in vain and then uses them after all."""

    def __init__(self, use: Callable):
        super().__init__()
        self.layer, self.use = nn.Linear(3, 2), use

    def forward(self, x):
        y = self.layer(x)
        if not self.training:
            return y
        drawn = torch.rand(len(x), 2)
        return self.use(y, drawn) if (drawn >= 0).all() else y


@pytest.mark.parametrize(
    "use",
    [
        lambda y, drawn: y + drawn,
        lambda y, drawn: y + torch.tensor(drawn.tolist()),
        lambda y, drawn: y + drawn.T.contiguous().T,
        lambda y, drawn: drawn,
        lambda y, drawn: drawn.view(-1, 2),
        lambda y, drawn: y.detach().copy_(drawn),
        lambda y, drawn: drawn.mul_(2),
    ],
    ids=["sum", "list", "copy", "returned", "view returned", "copy_", "in place"],
)
def test_numbers_that_are_also_used_count(use):
    """In training mode only: a site that did not count would be left off in silence."""
    model = Uses(use).eval()
    draws = caveat.MCDropout(model, seed=0).draws(X, n_draws=50)
    assert draws.std(0).min() > 0.1
    (site,) = caveat.audit(model, X)
    assert site.kind == "uniform"


@pytest.mark.parametrize("gated", [False, True], ids=["always", "in training"])
def test_a_rate_that_is_raised_later(gated):
    """A certain outcome stays so only as long as the bound does."""
    model = Asks(lambda m: torch.rand([]) < m.rate, gated=gated).eval()
    mc = caveat.MCDropout(model, seed=0)
    before = mc.draws(X, n_draws=40)
    model.rate += 0.5
    same = torch.isclose(mc.draws(X, n_draws=40), before, atol=1e-5)
    assert 0.1 < same.flatten(1).all(1).float().mean() < 0.9  # 0.5, of 40 draws
    assert len(caveat.audit(model, X)) == 2
