"""The contract of every non-linearity, against naive twins."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from caveat.theory.kernels.base import ratio
from caveat.theory.kernels.quadrature import expected_product
from tests.statistics import assert_mean_is
from tests.theory.kernels.cases import ALL, ANALYTIC, KINKED, pairs, plain

EVERY = pytest.mark.parametrize("sigma", ALL.values(), ids=ALL.keys())


def difference(function, at, step):
    """Central difference of fourth order."""
    near = function(at + step) - function(at - step)
    far = function(at + 2 * step) - function(at - 2 * step)
    return (8 * near - far) / (12 * step)


@pytest.mark.parametrize("name", ANALYTIC)
def test_product_is_the_integral(name):
    q = pairs()
    found = ALL[name].product_mean(q)
    rho = q.correlation * q.norm
    expected = expected_product(ALL[name], q.xx[:, None], q.yy[None, :], rho)
    assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("name", [*ANALYTIC, *KINKED, "leaky 0.1"])
def test_product_is_the_mean_of_draws(name):
    """All but the one with a random phase, which test_features draws."""
    sigma = ALL[name]
    q = plain(1.3, 0.6, -0.5)
    normal = np.random.default_rng(1).standard_normal((2, 200_000))
    u, v = np.linalg.cholesky([[1.3, -0.5], [-0.5, 0.6]]) @ normal
    product = float(sigma.product_mean(q)[0, 0])
    assert_mean_is(torch.tensor(sigma(u) * sigma(v)), product)
    square = float(sigma.square_mean(q.xx)[0])
    assert_mean_is(torch.tensor(sigma(u) ** 2), square)


@EVERY
def test_square_is_the_product_with_itself(sigma):
    variance = np.array([1e-3, 0.4, 1.0, 6.0])
    for value in variance:
        q = plain(value, value, value * (1 - 1e-15))
        both = sigma.product_mean(q)[0, 0], sigma.square_mean(np.array([value]))[0]
        assert both[0] == pytest.approx(both[1], rel=1e-6)


@EVERY
def test_shortfall_is_what_is_missing(sigma):
    q = pairs(seed=3)
    product, shortfall = sigma.moments(q)
    bound = np.sqrt(sigma.square_mean(q.xx)[:, None] * sigma.square_mean(q.yy))
    assert_allclose(product, sigma.product_mean(q), rtol=1e-15)
    assert_allclose(shortfall, bound - product, atol=1e-13 * bound.max())
    assert shortfall.min() >= 0


@EVERY
def test_slopes_are_derivatives(sigma):
    """E82, by differences in each of the three moments."""
    xx, yy, xy = 1.3, 0.6, -0.5
    slopes = sigma.slopes(plain(xx, yy, xy))

    def at(part):
        def product(value):
            moments = {"xx": xx, "yy": yy, "xy": xy} | {part: value}
            return sigma.product_mean(plain(**moments))[0, 0]

        return product

    for part, value in {"xx": xx, "yy": yy, "xy": xy}.items():
        expected = difference(at(part), value, 1e-3)
        assert getattr(slopes, part)[0, 0] == pytest.approx(expected, abs=1e-9), part


@EVERY
def test_slope_of_the_square(sigma):
    variance = np.array([0.4, 1.0, 3.0])
    expected = difference(sigma.square_mean, variance, 1e-3)
    assert_allclose(sigma.square_mean_slope(variance), expected, atol=1e-9)


@pytest.mark.parametrize("name", [*KINKED, "erf", "tanh", "sin"])
def test_at_the_origin_without_bias(name):
    """sigma(0) = 0, so the unit is silent and nothing is NaN."""
    q = pairs()
    zero = type(q)(np.zeros(1), q.yy, np.zeros((1, len(q.yy))), q.angle[:1] * 0 + 1)
    assert_allclose(ALL[name].product_mean(zero), 0, atol=1e-15)
    assert_allclose(ALL[name].square_mean(zero.xx), 0, atol=1e-15)
    for part in ALL[name].slopes(zero):
        assert np.isfinite(part).all()


@settings(deadline=None, max_examples=30)
@given(
    name=st.sampled_from(sorted(ALL)),
    seed=st.integers(0, 10_000),
    scale=st.sampled_from([1e-3, 0.3, 1.0, 2.0]),
)
def test_bound_of_cauchy_and_schwarz(name, seed, scale):
    q, sigma = pairs(seed, scale=scale), ALL[name]
    bound = np.sqrt(sigma.square_mean(q.xx)[:, None] * sigma.square_mean(q.yy))
    product = sigma.product_mean(q)
    assert (np.abs(product) <= bound * (1 + 1e-9) + 1e-15).all()


def test_biases_are_gaussian():
    biases = ALL["relu"].draw_biases(np.random.default_rng(0), 100_000, 4.0)
    assert_mean_is(torch.tensor(biases), 0.0)
    assert_mean_is(torch.tensor(biases**2), 4.0)


def test_ratio():
    assert_allclose(ratio(np.array([1.0, 2.0]), np.array([0.0, 4.0])), [0.0, 0.5])
