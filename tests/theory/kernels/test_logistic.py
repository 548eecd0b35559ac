"""tanh as a mixture of error functions, and the hand-over from the series."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.theory.kernels import (
    Erf,
    ErfMixture,
    Jump,
    NetworkKernel,
    Smooth,
    Tanh,
    expected_product,
)
from caveat.theory.kernels.logistic import tanh_as_erfs
from tests.theory.kernels.cases import pairs, plain

SERIES = Smooth(np.tanh)


def test_mixture_is_tanh_everywhere():
    """E84, to 11 digits on the whole line."""
    z = np.concatenate([np.linspace(-30, 30, 4001), np.logspace(-8, 6, 200)])
    assert_allclose(tanh_as_erfs()(z), np.tanh(z), rtol=0, atol=1e-11)
    assert sum(tanh_as_erfs().shares) == pytest.approx(1.0, abs=1e-11)


def test_mixture_and_series_agree():
    q, mixture = pairs(), tanh_as_erfs()
    assert_allclose(mixture.product_mean(q), SERIES.product_mean(q), atol=2e-11)
    assert_allclose(mixture.square_mean(q.xx), SERIES.square_mean(q.xx), atol=2e-11)
    slope = SERIES.square_mean_slope(q.xx)
    assert_allclose(mixture.square_mean_slope(q.xx), slope, atol=2e-11)
    for part, expected in zip(mixture.slopes(q), SERIES.slopes(q), strict=True):
        assert_allclose(part, expected, atol=5e-11)


def test_a_single_part_is_the_error_function():
    q, single = pairs(), ErfMixture((1.0,), (1.0,))
    assert_allclose(single.product_mean(q), Erf().product_mean(q), atol=1e-14)
    assert_allclose(single.square_mean(q.xx), Erf().square_mean(q.xx), atol=1e-14)
    for part, expected in zip(single.slopes(q), Erf().slopes(q), strict=True):
        assert_allclose(part, expected, atol=1e-14)


def test_reference_value():
    """theory.md, section 13, by the mixture."""
    found = tanh_as_erfs().product_mean(plain(25.0, 25.0, 20.0))[0, 0]
    assert found == pytest.approx(0.56435703344109, abs=2e-11)


@pytest.mark.parametrize("variance", [60.0, 100.0])
def test_steep_tanh_by_quadrature(variance):
    q = plain(variance, 80.0, 0.9 * np.sqrt(80 * variance))
    expected = expected_product(np.tanh, variance, 80.0, float(q.xy[0, 0]))
    assert Tanh().product_mean(q)[0, 0] == pytest.approx(float(expected), abs=2e-11)


def test_very_steep_tanh_is_a_sign():
    q = pairs().scaled(1e12)
    assert_allclose(Tanh().product_mean(q), Jump(-1, 1).product_mean(q), atol=1e-5)


def test_no_step_where_the_series_ends():
    below, above = (plain(v, v, 0.8 * v) for v in (25.0 - 1e-9, 25.0 + 1e-9))
    assert_allclose(Tanh().product_mean(below), Tanh().product_mean(above), atol=2e-11)
    assert_allclose(Tanh().slopes(below), Tanh().slopes(above), atol=2e-10)


def test_small_length_scales_need_no_warning():
    x = np.linspace(-2, 2, 20)[:, None]
    kernel = NetworkKernel("tanh", depth=2, weight_variance=1e4, bias_variance=1e4)
    matrix = kernel(x)
    assert np.linalg.eigvalsh(matrix).min() > -1e-10
    assert_allclose(np.diag(matrix), kernel.diag(x))
