"""Hermite functions and sums of powers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.theory.kernels import hermite


def test_polynomials_are_orthonormal():
    basis = hermite.basis(hermite.MOST)
    plain = np.polynomial.hermite_e.hermeval(hermite.nodes(), [0, 0, 0, 1])
    assert_allclose(basis[:, 3], hermite.weights() * plain / np.sqrt(6), atol=1e-16)
    low = basis[:, :20] / hermite.weights()[:, None]
    assert_allclose(low.T @ basis[:, :20], np.eye(20), atol=1e-12)


@pytest.mark.parametrize("n", [100, 1000, 2047])
def test_high_coefficients_of_an_exponential(n):
    """E exp(a g) h_n(g) = exp(a²/2) a^n / sqrt(n!), here with a = i t."""
    t = np.sqrt(n)
    wave = np.exp(1j * t * hermite.nodes())
    found = wave @ hermite.basis(hermite.MOST)[:, n]
    log_size = -(t**2) / 2 + n * np.log(t) - 0.5 * np.sum(np.log(np.arange(1, n + 1)))
    assert abs(found) == pytest.approx(np.exp(log_size), rel=1e-10)


def test_power_sum_restated():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((5, 9)), rng.standard_normal((4, 9))
    left[:, [2, 7, 8]] = 0.0
    rho = rng.uniform(-1, 1, (5, 4))
    powers = rho[:, :, None] ** np.arange(9)
    expected = np.einsum("ik,jk,ijk->ij", left, right, powers)
    assert_allclose(hermite.power_sum(left, right, rho), expected, atol=1e-13)
    assert_allclose(hermite.power_sum(0 * left, right, rho), 0.0)


def test_power_sum_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((7, 9)), rng.standard_normal((4, 9))
    rho = rng.uniform(-1, 1, (7, 4))
    whole = hermite.power_sum(left, right, rho)
    monkeypatch.setattr(hermite, "_BLOCK", 8)
    assert_allclose(hermite.power_sum(left, right, rho), whole, rtol=1e-15)


def test_tables_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        hermite.nodes()[0] = 1.0
