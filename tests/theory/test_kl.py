"""KL of dropped rows: reference values, quadrature restated, Monte Carlo."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate
from torch.testing import assert_close

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.theory import (
    component_information,
    kl_bias,
    kl_row_exact,
    kl_row_lower_bound,
    kl_row_monte_carlo,
    kl_row_upper_bound,
    mask_entropy,
)
from tests.theory.integrals import naive_information

# theory.md, section 13: p, m, s, exact, Prop. 1, Prop. 1 - H(p); l = 1
REFERENCE = [
    (0.5, (1.0, -1.0, 0.5), 0.1, 5.29210809842, 5.98525527898, 5.29210809842),
    (0.9, (0.3, 0.4), 0.05, 4.78138208099, 5.10646454711, 4.78138157372),
    (0.5, (0.3, 0.4), 0.5, 0.587372878935, 0.69879436112, 0.00564718056),
]
ROWS = {
    "keep_prob": st.floats(0.01, 1.0),
    "component_std": st.floats(0.01, 3.0),
    "lengthscale": st.floats(0.1, 10.0),
}


def vector(values):
    return torch.tensor(values, dtype=torch.float64)


# Reference values


@pytest.mark.parametrize(("keep", "mean", "std", "exact", "upper", "lower"), REFERENCE)
def test_reference_values(keep, mean, std, exact, upper, lower):
    row = {"mean": vector(mean), "keep_prob": keep, "component_std": std}
    assert kl_row_exact(**row).item() == pytest.approx(exact, abs=1e-11)
    assert kl_row_upper_bound(**row).item() == pytest.approx(upper, abs=1e-11)
    assert kl_row_lower_bound(**row).item() == pytest.approx(lower, abs=1e-11)


# Restatements


@pytest.mark.parametrize("keep", [0.02, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("distance", [0.01, 0.7, 3.0, 8.0, 20.0])
def test_information_by_another_integral(keep, distance):
    found = component_information(vector([distance]), keep_prob=keep, component_std=1.0)
    assert found.item() == pytest.approx(naive_information(distance, keep), abs=1e-10)


def test_kl_by_integrating_its_definition():
    """One weight, l = 2: the integral of q log(q / prior)."""
    keep, mean, std, length = 0.7, 0.8, 0.3, 2.0

    def normal(x, centre, sd):
        scaled = (x - centre) / sd
        return math.exp(-0.5 * scaled**2) / (sd * math.sqrt(2 * math.pi))

    def integrand(x):
        q = keep * normal(x, mean, std) + (1 - keep) * normal(x, 0.0, std)
        return q * math.log(q / normal(x, 0.0, 1 / length))

    expected, _ = integrate.quad(integrand, -3, 4, epsabs=1e-13, limit=300)
    found = kl_row_exact(
        vector([mean]), keep_prob=keep, component_std=std, lengthscale=length
    )
    assert found.item() == pytest.approx(expected, abs=1e-11)


def test_bias_is_the_kl_of_torch():
    normal = torch.distributions.Normal
    mean, std, length = vector([0.3, -1.2]), 0.4, 3.0
    prior = normal(torch.zeros_like(mean), 1 / length)
    expected = torch.distributions.kl_divergence(normal(mean, std), prior).sum()
    found = kl_bias(mean, component_std=std, lengthscale=length)
    assert_close(found, expected)


def test_a_kept_row_is_a_bias():
    mean = vector([[0.3, -1.2], [0.0, 0.0]])
    bias = kl_bias(mean, component_std=0.2)
    for kl in (kl_row_exact, kl_row_upper_bound, kl_row_lower_bound):
        assert_close(kl(mean, keep_prob=1.0, component_std=0.2), bias)


def test_entropy():
    assert mask_entropy(0.5).item() == pytest.approx(math.log(2), abs=1e-15)
    assert mask_entropy(1.0).item() == 0.0


# Properties


@settings(deadline=None)
@given(mean=st.lists(st.floats(-20, 20), min_size=1, max_size=4), **ROWS)
def test_exact_lies_between_the_bounds(mean, **row):
    exact = kl_row_exact(vector(mean), **row).item()
    upper = kl_row_upper_bound(vector(mean), **row).item()
    lower = kl_row_lower_bound(vector(mean), **row).item()
    slack = 1e-12 * max(1.0, abs(upper))
    assert lower - slack <= exact <= upper + slack
    assert exact >= -slack


@settings(deadline=None)
@given(angle=st.floats(0, 2 * math.pi), **ROWS)
def test_direction_does_not_matter(angle, **row):
    turned = kl_row_exact(vector([math.cos(angle), math.sin(angle)]), **row)
    assert_close(turned, kl_row_exact(vector([1.0, 0.0]), **row))


def test_limits():
    row = {"keep_prob": 0.3, "component_std": 0.1}
    assert component_information(vector([0.0, 0.0]), **row).item() == pytest.approx(
        0.0, abs=1e-12
    )
    far = component_information(vector([1e200, 0.0]), **row)
    assert_close(far, mask_entropy(0.3))


def test_gradients():
    mean = vector([[0.3, -0.4], [0.05, 0.02]]).requires_grad_()
    keep = vector([0.6, 0.9]).requires_grad_()
    std = vector([0.3, 0.1]).requires_grad_()

    def kl(mean, keep, std):
        return kl_row_exact(mean, keep_prob=keep, component_std=std, lengthscale=1.5)

    assert torch.autograd.gradcheck(kl, (mean, keep, std))


def test_gradient_in_the_keep_probability_needs_the_entropy():
    """theory.md 4: -H(p) must be kept when p is learned."""
    mean, keep = vector([1.0, -1.0, 0.5]), vector(0.8).requires_grad_()
    row = {"mean": mean, "keep_prob": keep, "component_std": 0.05}
    exact, lower, upper = (
        torch.autograd.grad(kl(**row), keep)[0]
        for kl in (kl_row_exact, kl_row_lower_bound, kl_row_upper_bound)
    )
    assert_close(lower, exact)
    assert (upper - exact).abs() > 1


def test_rows_at_once_equal_rows_one_by_one():
    mean = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).double()
    keep, std = torch.linspace(0.1, 1, 5).double(), torch.linspace(0.1, 2, 5).double()
    together = kl_row_exact(mean, keep_prob=keep, component_std=std)
    single = [
        kl_row_exact(m, keep_prob=p.item(), component_std=s.item())
        for m, p, s in zip(mean, keep, std, strict=True)
    ]
    assert_close(together, torch.stack(single))


def test_single_precision_keeps_its_type():
    found = kl_row_exact(torch.tensor([0.3, 0.4]), keep_prob=0.5, component_std=0.5)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(0.587372878935, rel=1e-6)


# Monte Carlo


@pytest.mark.parametrize(("keep", "mean", "std", "exact", "upper", "lower"), REFERENCE)
def test_monte_carlo_agrees_within_its_error(keep, mean, std, exact, upper, lower):
    estimate = kl_row_monte_carlo(
        vector(mean), keep_prob=keep, component_std=std, n_draws=20_000, seed=1
    )
    assert abs(estimate.value.item() - exact) < 5 * estimate.standard_error.item()
    assert 0 < estimate.standard_error < 0.05


def test_monte_carlo_of_several_rows_with_a_lengthscale():
    mean = vector([[0.3, 0.4], [2.0, -1.0], [0.0, 0.0]])
    row = {
        "keep_prob": vector([0.5, 0.8, 1.0]),
        "component_std": vector([0.5, 0.2, 0.3]),
        "lengthscale": 1.7,
    }
    estimate = kl_row_monte_carlo(mean, n_draws=20_000, seed=2, **row)
    gap = (estimate.value - kl_row_exact(mean, **row)).abs()
    assert bool((gap < 5 * estimate.standard_error).all())


def test_standard_error_is_the_spread_of_estimates():
    row = {"mean": vector([0.3, 0.4]), "keep_prob": 0.5, "component_std": 0.5}
    estimates = [kl_row_monte_carlo(n_draws=500, seed=s, **row) for s in range(400)]
    spread = torch.stack([e.value for e in estimates]).std()
    error = torch.stack([e.standard_error for e in estimates]).mean()
    assert spread.item() == pytest.approx(error.item(), rel=5 / math.sqrt(2 * 400))


def test_seeds():
    row = {"mean": vector([0.3]), "keep_prob": 0.5, "component_std": 0.5, "n_draws": 9}
    state = torch.get_rng_state()
    first, again, other = (kl_row_monte_carlo(seed=s, **row) for s in (3, 3, 4))
    assert first == again
    assert first != other
    assert torch.equal(torch.get_rng_state(), state)


# Refusals


def test_bad_arguments():
    row = {"keep_prob": 0.5, "component_std": 0.1}
    with pytest.raises(InputTypeError, match="mean"):
        kl_row_exact([1.0, 2.0], **row)
    with pytest.raises(ShapeError, match="weights of a unit last"):
        kl_row_exact(vector(1.0), **row)
    with pytest.raises(ParameterError, match="finite"):
        kl_row_exact(vector([math.nan]), **row)
    with pytest.raises(ParameterError, match="component_std"):
        kl_row_exact(vector([1.0]), keep_prob=0.5, component_std=0.0)
    with pytest.raises(ParameterError, match="one minus the drop rate"):
        kl_row_exact(vector([1.0]), keep_prob=vector(1.2), component_std=0.1)
    with pytest.raises(ShapeError, match="one per row"):
        kl_row_exact(vector([1.0, 2.0]), keep_prob=vector([0.5]), component_std=0.1)
    with pytest.raises(ParameterError, match="at least 2"):
        kl_row_monte_carlo(vector([1.0]), n_draws=1, **row)
