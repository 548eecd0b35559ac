"""Every product of M - 1 q' against the dense matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from caveat.maxent.linear.rows import ShiftedRows

RNG = np.random.default_rng(0)
DENSE = RNG.normal(size=(7, 5)) * (RNG.random((7, 5)) < 0.5)
OTHER = RNG.normal(size=(4, 5)) * (RNG.random((4, 5)) < 0.5)
SHIFT = RNG.normal(size=5)


@pytest.mark.parametrize("shift", [None, SHIFT])
@pytest.mark.parametrize("kind", [np.array, sp.csr_array, sp.csr_matrix])
def test_products_restated(kind, shift):
    rows = ShiftedRows.less(kind(DENSE), shift)
    whole = DENSE if shift is None else DENSE - shift
    one, several = RNG.normal(size=5), RNG.normal(size=(5, 3))
    assert_allclose(rows.dense(), whole)
    for weights in (one, several):
        assert_allclose(rows.times(weights), whole @ weights, atol=1e-12)
    for values in (RNG.normal(size=7), RNG.normal(size=(7, 3))):
        assert_allclose(rows.transposed_times(values), whole.T @ values, atol=1e-12)
    assert_allclose(rows.square_sums(), (whole**2).sum(1), atol=1e-12)
    assert_allclose(rows.scatter(), whole.T @ whole, atol=1e-12)
    assert_allclose(np.tril(rows.lower_gram()), np.tril(whole @ whole.T), atol=1e-12)
    assert_allclose(rows.take(slice(2, 4)).dense(), whole[2:4])


@pytest.mark.parametrize("left", [None, SHIFT])
@pytest.mark.parametrize("right", [None, SHIFT[::-1].copy()])
@pytest.mark.parametrize("kinds", [(np.array, np.array), (sp.csr_array, sp.csr_array)])
def test_cross_products_restated(kinds, left, right):
    first, second = (
        ShiftedRows.less(kinds[0](DENSE), left),
        ShiftedRows.less(kinds[1](OTHER), right),
    )
    expected = first.dense() @ second.dense().T
    assert_allclose(first.cross(second), expected, atol=1e-12)


def test_sparse_meets_dense():
    first, second = ShiftedRows(sp.csr_array(DENSE), SHIFT), ShiftedRows(OTHER)
    assert_allclose(first.cross(second), first.dense() @ OTHER.T, atol=1e-12)
    assert_allclose(second.cross(first), OTHER @ first.dense().T, atol=1e-12)
