"""Series of smooth functions: reference values, quadrature, honesty about errors."""

import re
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from caveat.errors import CaveatWarning, InputTypeError
from caveat.theory.kernels import (
    Erf,
    Jump,
    LeakyRelu,
    NetworkKernel,
    Smooth,
    expected_product,
)
from caveat.theory.kernels.base import norm_of
from caveat.theory.kernels.covariances import Covariances
from caveat.theory.kernels.naming import NAMED
from tests.theory.kernels.cases import SMOOTH, X, Y, pairs, plain

TANH = Smooth(np.tanh)


# theory.md, section 13: s_b², K(x, y), K(x, x)
@pytest.mark.parametrize(
    ("bias", "product", "square"),
    [
        (0.0, 0.03743191218607, 0.4350251889886),
        (0.25, 0.1140569789871, 0.4682882105306),
    ],
)
def test_reference_values(bias, product, square):
    q = Covariances.of_inputs(X, Y, weight_variance=1.0, bias_variance=bias)
    assert TANH.product_mean(q)[0, 0] == pytest.approx(product, abs=1e-12)
    assert TANH.square_mean(q.xx)[0] == pytest.approx(square, abs=1e-12)


def test_reference_value_of_a_steep_tanh():
    """theory.md, section 13: variance 25, where Gauss-Hermite has four digits."""
    found = TANH.product_mean(plain(25.0, 25.0, 20.0))[0, 0]
    assert found == pytest.approx(0.56435703344109, abs=1e-12)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("variance", [1e-6, 0.1, 3.0, 20.0])
def test_series_is_the_quadrature(name, variance):
    """E78 against E77: another integral by another rule."""
    sigma = NAMED[name]
    for rho in (-1.0 + 1e-9, -0.4, 0.0, 0.9, 1.0 - 1e-9):
        q = plain(variance, 0.7, rho * np.sqrt(0.7 * variance))
        expected = expected_product(sigma, variance, 0.7, float(q.xy[0, 0]))
        assert_allclose(sigma.product_mean(q), expected, rtol=1e-10, atol=1e-12)


def test_series_is_the_closed_form():
    q = pairs()
    smooth_erf = Smooth(Erf().__call__)
    assert_allclose(smooth_erf.product_mean(q), Erf().product_mean(q), atol=1e-13)
    for series, closed in zip(smooth_erf.slopes(q), Erf().slopes(q), strict=True):
        assert_allclose(series, closed, atol=1e-11)


def test_sigmoid_is_a_tanh():
    """sigmoid(z) = (1 + tanh(z/2)) / 2."""
    q = pairs()
    expected = 0.25 * (1 + TANH.product_mean(q.scaled(0.25)))
    assert_allclose(NAMED["sigmoid"].product_mean(q), expected, atol=1e-13)


@pytest.mark.parametrize(
    ("variance", "bound"), [(1.0, 1e-13), (25.0, 1e-12), (40.0, 1e-10), (90.0, 1e-7)]
)
def test_error_bound_of_a_tanh_grows_with_the_variance(variance, bound):
    assert TANH.error_bound(plain(variance, 1.0, 0.5)) < bound


def test_too_steep_a_function_knows_its_error():
    """A tanh of variance 1e6 is a sign to about 1e-3."""
    q = plain(1e6, 1e6, 0.999e6)
    error = abs(TANH.product_mean(q) - Jump(-1.0, 1.0).product_mean(q)).max()
    bound = TANH.error_bound(q)
    assert 1e-4 < bound < 0.1
    assert error < bound + 2e-3


def test_kinks_are_known_by_their_error():
    q, rough = plain(1.0, 1.0, 0.9999), Smooth(LeakyRelu().__call__)
    error = abs(rough.product_mean(q) - LeakyRelu().product_mean(q)).max()
    assert 1e-9 < error < rough.error_bound(q) < 1e-3


@pytest.mark.parametrize("kink", [0.0, 0.00625, 0.013, -0.7, 4.0])
@pytest.mark.parametrize("rho", [0.9999, 0.3, -0.9])
def test_the_error_of_a_kink_anywhere_is_below_what_is_told(kink, rho):
    """max(z - t, 0), against a one-dimensional integral split at the kink."""
    q, rough = plain(1.0, 1.0, rho), Smooth(lambda z: np.maximum(z - kink, 0.0))
    rest = np.sqrt(1.0 - rho**2)

    def inner(u):  # E max(v - t, 0) given u
        mean = rho * u - kink
        if rest == 0.0:
            return max(mean, 0.0)
        z = mean / rest
        return mean * stats.norm.cdf(z) + rest * stats.norm.pdf(z)

    parts = [
        integrate.quad(
            lambda u: (u - kink) * inner(u) * stats.norm.pdf(u), low, high, epsabs=1e-14
        )[0]
        for low, high in ((kink, kink + 2.0), (kink + 2.0, 12.0))
    ]
    size = rough.square_mean(np.ones(1))[0]
    error = abs(rough.product_mean(q)[0, 0] - sum(parts)) / size
    assert error <= rough.error_bound(q)


@pytest.mark.parametrize("name", ["relu", "abs", "leaky_relu", "step", "sign"])
@pytest.mark.parametrize("variance", [0.01, 1.0, 1e4])
def test_callable_twins_of_closed_forms_are_as_near_as_they_tell(name, variance):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 3))
    y = np.concatenate([x[:4], -x[4:8], x[8:] + 1e-3])
    q = Covariances.of_inputs(x, y, weight_variance=variance, bias_variance=0.1)
    closed, rough = NAMED[name], Smooth(NAMED[name].__call__)
    size = norm_of(closed.square_mean(q.xx), closed.square_mean(q.yy))
    error = np.abs(rough.product_mean(q) - closed.product_mean(q)) / size
    assert error.max() <= rough.error_bound(q)
    squares = rough.square_mean(q.xx) / closed.square_mean(q.xx) - 1.0
    assert np.abs(squares).max() <= rough.error_bound(q)


def test_kernels_tell_the_error_but_not_in_a_search():
    kernel = NetworkKernel(np.tanh, weight_variance=1e5)
    with pytest.warns(CaveatWarning, match="smaller weight variance") as caught:
        kernel(X, Y)
    assert re.search(r"tanh.* is right to \de-0\d only", str(caught[0].message))
    kernel(np.vstack([X, Y]), eval_gradient=True)


def test_memory_is_a_few_times_that_of_the_gram_matrix():
    x = np.random.default_rng(0).standard_normal((500, 4))
    kernel = NetworkKernel("gelu", weight_variance=0.3)
    kernel(x[:2])
    tracemalloc.start()
    gram = kernel(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 40 * gram.nbytes


def test_not_a_function():
    with pytest.raises(InputTypeError, match="callable"):
        Smooth(3.0)
