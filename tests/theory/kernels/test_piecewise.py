"""Closed forms of kinked functions: reference values, accuracy, invariances."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.errors import ParameterError
from caveat.theory.kernels import Identity, Jump, LeakyRelu
from caveat.theory.kernels.covariances import Covariances, angle_from_shortfall
from tests.theory.kernels.cases import X, Y, pairs

STEP, SIGN = Jump(0.0, 1.0), Jump(-1.0, 1.0)


def neighbours(t):
    """Points under the angle arctan t."""
    return Covariances.of_inputs(
        np.array([[1.0, 0.0]]),
        np.array([[1.0, t]]),
        weight_variance=1.0,
        bias_variance=0.0,
    )


# theory.md, section 13: s_b², K(x, y)
@pytest.mark.parametrize(
    ("sigma", "bias", "expected"),
    [
        (LeakyRelu(), 0.0, 0.17786636425883),
        (LeakyRelu(), 0.25, 0.28856261155243),
        (LeakyRelu(0.1), 0.0, 0.15407175504965),
        (LeakyRelu(0.1), 0.25, 0.26873571535747),
        (STEP, 0.0, 0.26669168321526),
        (STEP, 0.25, 0.29660737466933),
    ],
)
def test_reference_values(sigma, bias, expected):
    q = Covariances.of_inputs(X, Y, weight_variance=1.0, bias_variance=bias)
    assert sigma.product_mean(q)[0, 0] == pytest.approx(expected, abs=1e-13)


def test_jumps_of_neighbours_to_full_accuracy():
    """The trap: arccos of a correlation is off by 1e-8 near 1 (E72, E81)."""
    for t in (1e-2, 1e-5, 1e-7, 1e-9, 1e-12):
        q = neighbours(t)
        exact = 0.5 - math.atan(t) / (2 * math.pi)
        assert STEP.product_mean(q)[0, 0] == pytest.approx(exact, abs=2e-16)
        missing = STEP.moments(q).shortfall[0, 0]
        assert missing == pytest.approx(math.atan(t) / (2 * math.pi), abs=2e-16)
        assert SIGN.product_mean(q)[0, 0] == pytest.approx(4 * exact - 1, abs=1e-15)


def test_arccos_would_not_do():
    q = neighbours(1e-8)
    naive = 0.5 - math.acos(min(1.0, q.xy[0, 0] / q.norm[0, 0])) / (2 * math.pi)
    assert abs(naive - STEP.product_mean(q)[0, 0]) > 1e-10


def test_angle_behind_a_relu_by_its_series():
    """1 - cos t' = t²/2 - t³/(3 pi) - t⁴/24 + t⁵/(30 pi) + t⁶/720 - …"""
    for t in (1e-2, 1e-4, 1e-6, 1e-8, 1e-10):
        q = neighbours(math.tan(t))
        series = t**2 / 2 - t**4 / 24 + t**6 / 720
        series -= (t**3 / 3 - t**5 / 30 + t**7 / 840) / math.pi
        exact = 2 * math.asin(math.sqrt(series / 2))
        product, shortfall = LeakyRelu().moments(q)
        found = angle_from_shortfall(product + shortfall, shortfall)[0, 0]
        assert found == pytest.approx(exact, abs=5e-16)


def test_absolute_value_and_identity_are_leaky():
    q = pairs()
    relu, mirrored = LeakyRelu(), Covariances(q.xx, q.yy, -q.xy, np.pi - q.angle)
    both = 2 * (relu.product_mean(q) + relu.product_mean(mirrored))
    assert_allclose(LeakyRelu(-1.0).product_mean(q), both, atol=1e-14)
    same = LeakyRelu(1.0).product_mean(q)
    assert_allclose(same, Identity().product_mean(q), atol=1e-14)


def test_sign_is_two_steps():
    q = pairs()
    assert_allclose(SIGN.product_mean(q), 4 * STEP.product_mean(q) - 1, atol=1e-15)


def test_scale_invariance():
    q = pairs()
    stretched = Covariances(4 * q.xx, 9 * q.yy, 6 * q.xy, q.angle)
    relu = LeakyRelu(0.2)
    assert_allclose(relu.product_mean(stretched), 6 * relu.product_mean(q), rtol=1e-14)
    assert_allclose(STEP.product_mean(stretched), STEP.product_mean(q), rtol=1e-15)


def test_slopes_of_a_jump_are_finite_for_equal_points():
    for part in STEP.slopes(neighbours(0.0)):
        assert part[0, 0] == 0.0


def test_bad_slope():
    with pytest.raises(ParameterError, match="finite"):
        LeakyRelu(math.inf)
