"""Laws made of other ones, against their exact distribution functions."""

import numpy as np
import pytest
import torch
import torch.distributions as D
from scipy import stats
from torch import nn

import caveat

N = 6000
FALSE_ALARM = 1e-6


class Drawn(nn.Module):
    """The numbers themselves."""

    def __init__(self, how):
        super().__init__()
        self.how, self.weight = how, nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.how(x) + self.weight


def numbers(how, n=N):
    """Of one draw and many units of a single row: each has an address of its own."""
    x = torch.zeros(1, n)
    mc = caveat.MCDropout(Drawn(how), seed=3, stratified=False)
    return mc.draws(x, n_draws=2)[1, 0].double().numpy()


CONTINUOUS = {
    "log_normal_": (
        lambda x: x.clone().log_normal_(0.5, 0.3),
        stats.lognorm(0.3, scale=np.exp(0.5)),
    ),
    "cauchy_": (lambda x: x.clone().cauchy_(1.0, 2.0), stats.cauchy(1.0, 2.0)),
    **{
        f"gamma of {a}": (
            lambda x, a=a: D.Gamma(torch.full_like(x, a), 1.0).sample(),
            stats.gamma(a),
        )
        for a in (0.3, 1.0, 4.5, 200.0)
    },
    "beta": (
        lambda x: D.Beta(torch.full_like(x, 0.6), torch.full_like(x, 2.0)).sample(),
        stats.beta(0.6, 2.0),
    ),
    "dirichlet": (
        lambda x: D.Dirichlet(torch.tensor([0.7, 1.2, 3.0])).sample(x.shape)[..., 0],
        stats.beta(0.7, 4.2),
    ),
    "uniform by out": (
        lambda x: torch.rand(x.shape, out=torch.empty(0)),
        stats.uniform,
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_laws(name):
    how, law = CONTINUOUS[name]
    assert stats.kstest(numbers(how), law.cdf).pvalue > FALSE_ALARM


DISCRETE = {
    "geometric_": (lambda x: x.clone().geometric_(0.3), stats.geom(0.3)),
    **{
        f"poisson of {rate}": (
            lambda x, rate=rate: torch.poisson(torch.full_like(x, rate)),
            stats.poisson(rate),
        )
        for rate in (0.0, 0.2, 7.0, 900.0)
    },
    "binomial": (
        lambda x: torch.binomial(torch.full_like(x, 9.0), torch.full_like(x, 0.3)),
        stats.binom(9, 0.3),
    ),
    "binomial of many": (
        lambda x: torch.binomial(torch.full_like(x, 999.0), torch.full_like(x, 0.3)),
        stats.binom(999, 0.3),
    ),
    "random_": (lambda x: x.clone().random_(2, 7), stats.randint(2, 7)),
    "random_ to": (lambda x: x.clone().random_(6), stats.randint(0, 6)),
    "multinomial": (
        lambda x: torch.multinomial(torch.tensor([2.0, 0.0, 1.0, 3.0]), x.numel(), True)
        .view(x.shape),
        stats.rv_discrete(values=((0, 2, 3), (1 / 3, 1 / 6, 1 / 2))),
    ),
    "categorical": (
        lambda x: D.Categorical(probs=torch.tensor([0.2, 0.0, 0.8])).sample(x.shape),
        stats.rv_discrete(values=((0, 2), (0.2, 0.8))),
    ),
    "one of several": (
        lambda x: torch.multinomial(
            torch.tensor([1.0, 0.0, 3.0]).expand(x.numel(), 3), 1
        ).view(x.shape),
        stats.rv_discrete(values=((0, 2), (0.25, 0.75))),
    ),
    "bernoulli_ of truth values": (
        lambda x: torch.empty(x.shape, dtype=torch.bool).bernoulli_(0.3),
        stats.bernoulli(0.3),
    ),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:The rows of Drawn")  # binomial of many
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_laws(name):
    """Every value as often as it should be, rare ones together."""
    how, law = DISCRETE[name]
    found = numbers(how)
    values = np.unique(np.concatenate([found, np.arange(1300.0)]))
    expected = N * law.pmf(values)
    assert expected.sum() == pytest.approx(N, rel=1e-6)
    count = np.array([(found == value).sum() for value in values])
    assert not count[expected == 0].any(), "a value that cannot be"
    often = expected > 8
    counts = [*count[often], count[~often].sum()]
    wanted = [*expected[often], max(N - expected[often].sum(), 1e-9)]
    if len(counts) > 2:
        assert stats.chisquare(counts, wanted, sum_check=False).pvalue > FALSE_ALARM


def test_without_replacement_nothing_comes_twice():
    def how(x):
        weights = torch.tensor([1.0, 2.0, 0.0, 4.0]).expand(len(x), 4)
        return torch.multinomial(weights, 3).float()

    draws = caveat.MCDropout(Drawn(how), seed=0).draws(torch.zeros(5, 1), n_draws=200)
    assert set(
        draws.sort(-1).values.flatten(0, 1).unique(dim=0).flatten().tolist()
    ) == {0, 1, 3}
    first = draws[:, 0, 0]
    assert abs((first == 3).double().mean() - 4 / 7) < 5 * (12 / 49 / 200) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_types_are_kept(dtype):
    for how in (
        lambda x: torch.poisson(x + 3),
        lambda x: torch._standard_gamma(x.float() + 0.5).to(x.dtype),
        lambda x: x.clone().log_normal_(),
        lambda x: x.clone().geometric_(0.5),
        lambda x: x.clone().random_(),
    ):
        model = Drawn(how).to(dtype)
        draws = caveat.MCDropout(model, seed=0).draws(
            torch.zeros(2, 3, dtype=dtype), n_draws=3
        )
        assert draws.dtype == dtype


def test_gradients_go_through_a_gamma_number():
    """Of the drawn function: the slope in its shape, by finite differences."""
    alpha = torch.tensor([0.4, 1.7, 9.0], dtype=torch.float64)

    class Shaped(nn.Module):
        def __init__(self):
            super().__init__()
            self.alpha = nn.Parameter(alpha.clone())

        def forward(self, x):
            return D.Gamma(self.alpha, 1.0).rsample((len(x),)) + x

    model, x = Shaped(), torch.zeros(2, 3, dtype=torch.float64)
    function = caveat.MCDropout(model, seed=0, shared=False).function(1)
    (slope,) = torch.autograd.grad(function(x).sum(), model.alpha)
    # d sample / d alpha = -(dF/dalpha) / density, at the sample itself
    step, drawn = 1e-6, function(x).detach().numpy()
    wanted = 0
    for row in drawn:
        lower, upper = (stats.gamma(alpha.numpy() + s).cdf(row) for s in (-step, step))
        wanted = wanted - (upper - lower) / (2 * step) / stats.gamma(alpha.numpy()).pdf(
            row
        )
    assert slope.numpy() == pytest.approx(wanted, rel=1e-3)
