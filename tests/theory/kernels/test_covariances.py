"""Moments of pre-activations, and angles where arccos fails."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.theory.kernels.covariances import (
    Covariances,
    angle_from_shortfall,
    as_pair,
    as_points,
)
from tests.theory.kernels.cases import pairs

TINY = [1e-1, 1e-3, 1e-5, 1e-7, 1e-8, 1e-9, 1e-12]


def of(x, y, bias=0.0):
    return Covariances.of_inputs(
        np.array([x]), np.array([y]), weight_variance=1.0, bias_variance=bias
    )


def test_moments_restated():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((5, 3))
    q = Covariances.of_inputs(x, y, weight_variance=0.7, bias_variance=0.2)
    assert_allclose(q.xy, 0.7 * x @ y.T + 0.2, rtol=1e-14)
    assert_allclose(q.xx, 0.7 * (x**2).sum(1) + 0.2, rtol=1e-14)
    assert_allclose(q.yy, 0.7 * (y**2).sum(1) + 0.2, rtol=1e-14)
    rho = q.xy / np.sqrt(q.xx[:, None] * q.yy)
    assert_allclose(q.angle, np.arccos(rho), rtol=1e-12)
    assert_allclose(q.correlation, rho, atol=1e-15)


@pytest.mark.parametrize("t", TINY)
def test_angles_of_neighbours_are_right_where_arccos_is_not(t):
    """Of (1, 0) and (1, t) the angle is arctan t."""
    q = of([3.0, 0.0], [2.0, 2.0 * t])
    assert_allclose(q.angle[0, 0], np.arctan(t), rtol=0, atol=5e-16)
    if t <= 1e-8:
        naive = np.arccos(min(1.0, float(q.xy[0, 0] / q.norm[0, 0])))
        assert abs(naive - np.arctan(t)) > 1e-13 or naive == 0.0


@pytest.mark.parametrize("t", TINY)
def test_angles_of_opposites_are_right(t):
    q = of([3.0, 0.0], [-2.0, 2.0 * t])
    assert_allclose(q.angle[0, 0], np.pi - np.arctan(t), rtol=0, atol=5e-16)


@pytest.mark.parametrize("t", TINY)
def test_angle_from_what_is_missing(t):
    norm, missing = np.array([[7.0]]), np.array([[14.0 * np.sin(t / 2) ** 2]])
    assert_allclose(angle_from_shortfall(norm, missing), [[t]], rtol=1e-15)


def test_what_is_missing_is_clipped():
    norm = np.ones((1, 3))
    angle = angle_from_shortfall(norm, np.array([[-1e-17, 2 + 1e-15, 1.0]]))
    assert_allclose(angle, [[0.0, np.pi, np.pi / 2]], atol=1e-15)


@given(t=st.floats(0, np.pi), a=st.floats(1e-3, 1e3), b=st.floats(1e-3, 1e3))
def test_differences_and_sums_without_cancellation(t, a, b):
    x, y = [a, 0.0], [b * np.cos(t), b * np.sin(t)]
    q = of(x, y)
    scale = 1e-14 * (a**2 + b**2)
    distance = np.square(np.subtract(x, y)).sum()
    assert_allclose(q.squared_distance[0, 0], distance, rtol=1e-9, atol=scale)
    assert_allclose(
        q.squared_sum[0, 0], np.square(np.add(x, y)).sum(), rtol=1e-9, atol=scale
    )
    assert_allclose(q.shortfall[0, 0], a * b - q.xy[0, 0], rtol=1e-9, atol=scale)
    assert q.shortfall.min() >= 0


def test_points_at_the_origin_have_no_angle():
    q = of([0.0, 0.0], [1.0, 2.0])
    assert q.angle[0, 0] == np.pi / 2
    assert q.defined[0, 0] == 0


def test_scaled():
    q = pairs()
    half = q.scaled(0.5)
    assert_allclose(half.norm, 0.5 * q.norm)
    assert_allclose(half.correlation, q.correlation)


def test_bad_points():
    with pytest.raises(ShapeError, match=r"reshape\(-1, 1\)"):
        as_points("X", [1.0, 2.0])
    with pytest.raises(ParameterError, match="1 of 2 values are NaN"):
        as_points("X", [[1.0, np.nan]])
    with pytest.raises(InputTypeError, match="array of numbers"):
        as_points("X", [["a"]])
    with pytest.raises(ShapeError, match="Got 1 and 2"):
        as_pair([[1.0]], [[1.0, 2.0]])
