"""Error function and probit: reference values, and large variances."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.theory.kernels import (
    Erf,
    Jump,
    SineWave,
    Smooth,
    ZeroToOne,
    expected_product,
)
from caveat.theory.kernels.covariances import Covariances
from tests.theory.kernels.cases import X, Y, pairs

PROBIT = ZeroToOne(Erf(), 0.5)


# theory.md, section 13: s_b², K(x, y), K(x, x)
@pytest.mark.parametrize(
    ("sigma", "bias", "product", "square"),
    [
        (Erf(), 0.0, 0.04342555609211, 0.5064965711423),
        (Erf(), 0.25, 0.13042005825555, 0.53989308767477),
        (PROBIT, 0.0, 0.25807034219686, 0.34374719054413),
        (PROBIT, 0.25, 0.27514162463567, 0.35241638234957),
    ],
)
def test_reference_values(sigma, bias, product, square):
    q = Covariances.of_inputs(X, Y, weight_variance=1.0, bias_variance=bias)
    assert sigma.product_mean(q)[0, 0] == pytest.approx(product, abs=1e-13)
    assert sigma.square_mean(q.xx)[0] == pytest.approx(square, abs=1e-13)


def test_arcsine_restated():
    q = pairs()
    root = np.sqrt(np.outer(1 + 2 * q.xx, 1 + 2 * q.yy))
    assert_allclose(
        Erf().product_mean(q), 2 / np.pi * np.arcsin(2 * q.xy / root), atol=1e-14
    )
    root = np.sqrt(np.outer(1 + q.xx, 1 + q.yy))
    expected = 0.25 + np.arcsin(q.xy / root) / (2 * np.pi)
    assert_allclose(PROBIT.product_mean(q), expected, atol=1e-14)


@pytest.mark.parametrize("variance", [1.0, 1e4, 1e8, 1e12, 1e16])
def test_what_is_missing_to_1_at_large_variances(variance):
    """1 - K(x, x) = (2/pi) arctan(sqrt(1 + 4q) / 2q), where arcsin has no digits."""
    root = math.sqrt(variance)
    q = Covariances.of_inputs(
        np.array([[root]]), np.array([[root]]), weight_variance=1.0, bias_variance=0.0
    )
    exact = 2 / math.pi * math.atan(math.sqrt(1 + 4 * variance) / (2 * variance))
    assert 1 - Erf().product_mean(q)[0, 0] == pytest.approx(exact, abs=3e-16)
    assert 1 - Erf().square_mean(q.xx)[0] == pytest.approx(exact, abs=3e-16)


def test_steep_sigmoids_are_jumps():
    q = pairs().scaled(1e12)
    assert_allclose(Erf().product_mean(q), Jump(-1.0, 1.0).product_mean(q), atol=1e-5)
    assert_allclose(PROBIT.product_mean(q), Jump(0.0, 1.0).product_mean(q), atol=1e-5)


def test_any_odd_function():
    """E (1 + t_x)(1 + t_y) / 4 with t = sin(z / 2), by quadrature."""
    q, sigma = pairs(), ZeroToOne(SineWave(), 0.25)
    rho = q.correlation * q.norm
    expected = expected_product(sigma, q.xx[:, None], q.yy, rho)
    assert_allclose(sigma.product_mean(q), expected, rtol=1e-12)


def test_error_is_that_of_the_odd_function():
    q = pairs().scaled(1e4)
    steep = ZeroToOne(Smooth(np.tanh), 0.25)
    assert steep.error_bound(q) == Smooth(np.tanh).error_bound(q.scaled(0.25)) > 0
