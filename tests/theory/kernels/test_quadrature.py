"""The two-dimensional trapezoid rule."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate

from caveat.errors import ParameterError
from caveat.theory.kernels import expected_product
from caveat.theory.kernels.naming import gelu


def test_reference_value():
    assert float(expected_product(np.tanh, 25.0, 25.0, 20.0)) == pytest.approx(
        0.56435703344109, abs=1e-13
    )


def test_by_scipy():
    """A Gaussian density times gelu(u) gelu(v), by an adaptive rule."""
    xx, yy, xy = 0.9, 1.4, 0.6
    inverse = np.linalg.inv([[xx, xy], [xy, yy]])
    scale = 1 / (2 * np.pi * np.sqrt(xx * yy - xy**2))

    def integrand(u, v):
        z = np.array([u, v])
        return scale * np.exp(-0.5 * z @ inverse @ z) * gelu(u) * gelu(v)

    expected, _ = integrate.dblquad(integrand, -10, 10, -9, 9, epsabs=1e-8)
    found = float(expected_product(gelu, xx, yy, xy))
    assert found == pytest.approx(expected, abs=1e-7)


def test_shapes_broadcast_and_degenerate_pairs():
    found = expected_product(np.tanh, np.ones((3, 1)), np.ones(4), 0.0)
    assert_allclose(found, np.zeros((3, 4)), atol=1e-16)
    assert float(expected_product(np.cos, 0.0, 1.0, 0.0)) == pytest.approx(
        np.exp(-0.5), abs=1e-14
    )
    same = expected_product(np.cos, 1.0, 1.0, 1.0 + 1e-15)  # clipped
    assert float(same) == pytest.approx(0.5 * (1 + np.exp(-2)), abs=1e-14)


def test_memory_does_not_grow_with_the_pairs():
    peaks = []
    for n_pairs in (2_000, 8_000):
        tracemalloc.start()
        expected_product(np.tanh, np.ones(n_pairs), 1.0, 0.3)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] < 1e8


def test_kinks_are_refused():
    with pytest.raises(ParameterError, match="closed form for kinked"):
        expected_product(lambda z: np.maximum(z, 0.0) + (z > 0), 1.0, 1.0, 0.5)


def test_bad_numbers():
    with pytest.raises(ParameterError, match="finite"):
        expected_product(np.tanh, np.nan, 1.0, 0.0)
