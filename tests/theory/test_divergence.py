"""Raw KL terms against integrals, torch.distributions and Monte Carlo."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st
from torch.distributions import (
    Categorical,
    Independent,
    LowRankMultivariateNormal,
    MixtureSameFamily,
    MultivariateNormal,
    Normal,
    kl_divergence,
)
from torch.testing import assert_close

from caveat import theory
from caveat.theory import divergence
from tests.noise.families import double
from tests.statistics import assert_mean_is
from tests.theory.integrals import naive_information

ROWS = [[1.0, -1.0, 0.5], [0.3, 0.4, 0.0], [-0.02, 0.01, 0.03]]  # p m of three rows


@pytest.mark.parametrize("length", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("keep", [0.02, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("sd", [0.01, 0.1, 0.7])
def test_two_components_are_proposition_1_less_the_information(keep, sd, length):
    found = divergence.two_components(double(ROWS), keep, math.log(sd), length)
    for row, kl in zip(ROWS, found.tolist(), strict=True):
        square = sum(w**2 for w in row) / keep**2
        variance = (length * sd) ** 2
        upper = keep * length**2 * square / 2 + 1.5 * (
            variance - math.log(variance) - 1
        )
        gap = min(math.sqrt(square) / sd, 40.0)  # beyond, components are apart
        expected = upper - naive_information(gap, keep)
        assert kl == pytest.approx(expected, rel=1e-11, abs=1e-10)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_information_at_the_ends(dtype):
    """None if p is 1, or the components are one; H(p) if they are far apart."""
    gap = torch.tensor([0.0, 1.0, 30.0, 1e6], dtype=dtype)
    nothing = divergence.information(gap, 1.0)
    assert nothing.dtype == dtype
    assert_close(nothing, torch.zeros_like(gap))
    found = divergence.information(gap, 0.3)
    assert_close(found[0], torch.zeros_like(found[0]))
    assert_close(found[2:], theory.mask_entropy(0.3).to(dtype).expand(2))


def test_networks_can_be_mapped_over():
    rows, keep = torch.rand(4, 3, 2).double(), 0.7

    def kl(network):
        return divergence.two_components(network, keep, math.log(0.3), 1.5).sum()

    each = torch.stack([kl(network) for network in rows])
    assert_close(torch.func.vmap(kl)(rows), each)


@pytest.mark.parametrize("keep", [0.3, 0.8])
def test_dropped_weights_are_proposition_1_without_its_constant(keep):
    rows, sd, length = double(ROWS), 1e-3, 0.7
    upper = theory.kl_row_upper_bound(
        rows / keep, keep_prob=keep, component_std=sd, lengthscale=length
    ).sum()
    constant = theory.kl_bias(
        torch.zeros(rows.numel()).double(), component_std=sd, lengthscale=length
    )
    square = rows.square().sum()
    assert_close(divergence.dropped(square, keep, length), upper - constant)


@pytest.mark.parametrize("keep", [1e-6, 0.3, 0.5, 0.999])
def test_entropy_is_that_of_theory(keep):
    logit = torch.logit(double(keep))
    assert_close(divergence.mask_entropy(logit), theory.mask_entropy(keep))
    assert_close(divergence.mask_entropy(-logit), theory.mask_entropy(keep))


def test_gaussian_is_that_of_torch():
    mean, sd, length = double([0.3, -1.2]), double([0.4, 0.1]), 3.0
    prior = Normal(torch.zeros_like(mean), 1 / length)
    expected = kl_divergence(Normal(mean, sd), prior).sum()
    assert_close(divergence.gaussian(mean, sd.log(), length).sum(), expected)
    one = kl_divergence(Normal(mean, 0.4), prior)
    assert_close(divergence.gaussian(mean, math.log(0.4), length), one)


def test_multiplied_rows_are_the_limit_of_a_narrow_gaussian():
    """KL of N(m, a m m' + s² I) less its constant, as s -> 0."""
    length, variance, sd = 0.8, 0.4, 1e-5

    def exact(row):
        covariance = variance * torch.outer(row, row) + sd**2 * torch.eye(3).double()
        prior = MultivariateNormal(
            torch.zeros(3).double(), torch.eye(3).double() / length**2
        )
        return kl_divergence(MultivariateNormal(row, covariance), prior)

    rows = double(ROWS[:2])
    constant = exact(rows[0]) - divergence.multiplied(rows[:1], variance, length)[0]
    assert_close(
        divergence.multiplied(rows[1:], variance, length)[0] + constant,
        exact(rows[1]),
        rtol=1e-6,
        atol=1e-6,
    )


def test_a_row_of_zeros_is_no_accident():
    rows = torch.zeros(2, 3, requires_grad=True)
    divergence.multiplied(rows, 0.4, 1.0).sum().backward()
    assert rows.grad.isfinite().all()
    rows.grad = None
    divergence.two_components(rows, 0.7, -2.3, 1.0).sum().backward()
    assert rows.grad.isfinite().all()


def test_low_rank_is_that_of_torch():
    mean, log_std = torch.randn(5).double(), torch.randn(5).double() - 1
    factors, length = torch.randn(2, 5).double(), 0.6
    law = LowRankMultivariateNormal(mean, factors.T, torch.exp(2 * log_std))
    prior = MultivariateNormal(torch.zeros(5).double(), torch.eye(5).double() / 0.6**2)
    expected = kl_divergence(law, prior)
    assert_close(divergence.low_rank(mean, log_std, factors, length), expected)


# Several components


def monte_carlo_kl(means, probabilities, sd, length, n_draws=40_000):
    """Draws of log q - log prior, of one row."""
    choice = Categorical(double(probabilities))
    law = MixtureSameFamily(choice, Independent(Normal(means, sd), 1))
    prior = Independent(Normal(torch.zeros_like(means[0]), 1 / length), 1)
    drawn = law.sample((n_draws,))
    return law.log_prob(drawn) - prior.log_prob(drawn)


@pytest.mark.parametrize("sd", [0.05, 2.0])
def test_several_components_are_exact_when_separate_and_when_alike(sd):
    """Separate for small s; for large s the means hardly differ."""
    means = double([[0.0, 0.0], [1.0, -0.5], [0.2, 1.0]]) / (1 if sd < 1 else 20)
    shares = (0.2, 0.5, 0.3)
    found = divergence.components(means[:, None], shares, sd, 0.7)[0]
    assert_mean_is(monte_carlo_kl(means, shares, sd, 0.7), found)


def test_several_components_are_never_too_small():
    """Between the exact value and proposition 1, both by Monte Carlo."""
    shares, length = (0.2, 0.5, 0.3), 1.3
    for scale in (0.1, 0.5, 1.0, 2.0):
        means = scale * double([[0.0, 0.0], [1.0, -0.5], [0.2, 1.0]])
        found = divergence.components(means[:, None], shares, 0.4, length)
        ratio = monte_carlo_kl(means, shares, 0.4, length)
        error = ratio.std() / math.sqrt(len(ratio))
        square = torch.tensordot(double(shares), means.square().sum(-1), 1)
        spread = theory.kl_bias(
            torch.zeros(2).double(), component_std=0.4, lengthscale=length
        )
        assert ratio.mean() - 5 * error < found < length**2 / 2 * square + spread


@options(deadline=None)
@given(
    row=st.lists(st.floats(-5, 5), min_size=1, max_size=3),
    keep=st.floats(0.05, 0.95),
    sd=st.floats(0.05, 2.0),
    length=st.floats(0.1, 5.0),
)
def test_two_of_several_components_lie_between_exact_and_proposition_1(
    row, keep, sd, length
):
    mean = double(row)
    means = torch.stack([torch.zeros_like(mean), mean])[:, None]
    found = divergence.components(means, (1 - keep, keep), sd, length).item()
    known = {"keep_prob": keep, "component_std": sd, "lengthscale": length}
    upper = theory.kl_row_upper_bound(mean, **known).item()
    slack = 1e-9 * max(1.0, abs(upper))
    assert theory.kl_row_exact(mean, **known).item() - slack <= found <= upper + slack


def test_gradients():
    rows = double(ROWS).requires_grad_()
    log_std, factors = double([-1.0, -2.0, 0.5]), double(ROWS[:2])
    log_std.requires_grad_()
    factors.requires_grad_()
    check = torch.autograd.gradcheck
    assert check(lambda r: divergence.two_components(r, 0.7, -1.2, 0.5), rows)
    assert check(lambda r: divergence.multiplied(r, 0.7, 0.5), rows)
    assert check(
        lambda r: divergence.components(r[:, None], (0.2, 0.3, 0.5), 0.4, 0.5), rows
    )
    assert check(
        lambda s, v: divergence.low_rank(rows[0].detach(), s, v, 0.5),
        (log_std, factors),
    )
