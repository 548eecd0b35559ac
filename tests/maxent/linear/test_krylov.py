"""Iterative solutions against the factorisations."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from caveat.errors import ParameterError
from caveat.maxent.linear import krylov
from caveat.maxent.linear.factors import DualFactor
from caveat.maxent.linear.krylov import conjugate_gradients, solve, solve_shifted
from caveat.maxent.linear.rows import ShiftedRows

RNG = np.random.default_rng(0)


def rows_and_response(n, p):
    z = sp.random_array((n, p), density=0.1, rng=RNG, format="csr")
    return ShiftedRows(z, 0.05 * RNG.normal(size=p)), RNG.normal(size=n)


@pytest.mark.parametrize("shape", [(60, 300), (300, 60)])
def test_conjugate_gradients_find_the_mean(shape):
    rows, y = rows_and_response(*shape)
    mean, residual = DualFactor(rows).solve(y)
    found = solve(rows, y, tol=1e-12)
    assert_allclose(found.mean, mean, atol=1e-10)
    assert_allclose(found.residual, residual, atol=1e-10)
    assert 1 < found.n_iter < 60


def test_a_good_start_saves_iterations():
    rows, y = rows_and_response(60, 300)
    cold = solve(rows, y, tol=1e-10)
    warm = solve(rows, y, tol=1e-10, start=cold.residual)
    assert warm.n_iter == 0
    assert_allclose(warm.mean, cold.mean)


def test_a_response_of_zeros():
    rows, y = rows_and_response(60, 300)
    assert not solve(rows, 0 * y, tol=1e-10).mean.any()
    assert not solve_shifted(rows, 0 * y, np.array([1.0]), tol=1e-10).any()


@pytest.mark.parametrize("shape", [(60, 300), (300, 60), (5, 2), (1, 4)])
def test_one_space_serves_all_shifts(shape):
    rows, y = rows_and_response(*shape)
    gains = np.array([0.0, 0.01, 1.0, 50.0])
    found = solve_shifted(rows, y, gains, tol=1e-12)
    z = rows.dense()
    for column, gain in enumerate(gains):
        expected = np.linalg.solve(np.eye(len(y)) + gain * z @ z.T, y)
        assert_allclose(found[:, column], expected, atol=1e-9)


def test_the_residual_of_a_shift_is_within_tol():
    rows, y = rows_and_response(200, 800)
    gains, tol = np.array([0.1, 1.0, 10.0]), 1e-4
    found = solve_shifted(rows, y, gains, tol=tol)
    z = rows.dense()
    residual = y[:, None] - found - gains * (z @ (z.T @ found))
    relative = np.linalg.norm(residual, axis=0) / np.linalg.norm(y)
    assert (relative < 1.01 * tol).all() and relative.max() > 1e-9


def test_giving_up(monkeypatch):
    monkeypatch.setattr(krylov, "_MOST", 2)
    matrix = np.diag(np.arange(1.0, 9.0))
    with pytest.raises(ParameterError, match="did not reach tol=1e-09 in 2"):
        conjugate_gradients(
            lambda v: matrix @ v, np.ones(8), diagonal=np.ones(8), tol=1e-9
        )
