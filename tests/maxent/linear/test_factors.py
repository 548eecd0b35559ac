"""Primal and dual forms answer every question alike."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_allclose

from caveat.errors import ParameterError
from caveat.maxent.linear import factors
from caveat.maxent.linear.factors import DualFactor, PrimalFactor
from caveat.maxent.linear.rows import ShiftedRows
from tests.statistics import assert_mean_is

RNG = np.random.default_rng(0)


def both(n, p, sparse):
    z = RNG.normal(size=(n, p)) * (RNG.random((n, p)) < 0.6)
    shift = RNG.normal(size=p)
    rows = ShiftedRows.less(sp.csr_array(z) if sparse else z, shift)
    return rows, PrimalFactor(rows, np.ones(p)), DualFactor(rows)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(12, 5), (5, 12), (7, 7), (1, 3), (3, 1)])
def test_the_forms_agree_with_each_other_and_with_the_inverse(shape, sparse):
    rows, primal, dual = both(*shape, sparse)
    z = rows.dense()
    inverse = np.linalg.inv(z.T @ z + np.eye(shape[1]))
    y, new = RNG.normal(size=shape[0]), ShiftedRows(RNG.normal(size=(4, shape[1])))
    directions = RNG.normal(size=(shape[1], 2))
    for factor in (primal, dual):
        mean, residual = factor.solve(y)
        assert_allclose(mean, inverse @ z.T @ y, atol=1e-11)
        assert_allclose(residual, y - z @ mean, atol=1e-11)
        expected = np.einsum("ij,jk,ik->i", new.matrix, inverse, new.matrix)
        assert_allclose(factor.quadratic(new), expected, atol=1e-11)
        assert_allclose(factor.complement(), 1 - np.diag(z @ inverse @ z.T), atol=1e-11)
        assert_allclose(factor.apply_inverse(directions), inverse @ directions)
        assert_allclose(factor.log_det, -np.linalg.slogdet(inverse)[1])


def test_asking_changes_nothing():
    rows, primal, dual = both(6, 4, sparse=False)
    before = rows.dense().copy()
    for factor in (primal, dual):
        first = factor.complement()
        factor.quadratic(rows)
        assert_allclose(factor.complement(), first)
    assert np.array_equal(rows.dense(), before)


def test_rows_in_chunks(monkeypatch):
    _, primal, dual = both(6, 4, sparse=True)
    new = ShiftedRows(RNG.normal(size=(11, 4)))
    whole = primal.quadratic(new)
    monkeypatch.setattr(factors, "_CHUNK", 9)
    assert_allclose(dual.quadratic(new), whole)
    assert dual.quadratic(new.take(slice(0, 0))).shape == (0,)


@pytest.mark.parametrize("number", [1, 2])
def test_deviates_have_the_covariance(number):
    found = both(4, 6, sparse=False)
    z = found[0].dense()
    covariance = np.linalg.inv(z.T @ z + np.eye(6))
    draws = torch.from_numpy(found[number].deviates(40_000, np.random.default_rng(1)).T)
    assert_mean_is(draws, 0.0)
    products = (draws[:, :, None] * draws[:, None, :]).flatten(1)
    assert_mean_is(products, torch.from_numpy(covariance).flatten())


def test_an_improper_posterior_is_refused():
    with pytest.raises(ParameterError, match="improper: some combination"):
        PrimalFactor(ShiftedRows(np.ones((3, 5))), np.zeros(5))
