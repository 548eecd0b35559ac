"""Column sums of dense and sparse data."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from caveat.estimators import (
    BayesianDropoutClassifier,
    BayesianDropoutRegression,
    BayesianDropoutRegressionCV,
    dropout_path,
)
from caveat.maxent.linear import Features


def test_sums_restated():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9, 6)) * (rng.random((9, 6)) < 0.5)
    x[:, 2] = 0.0
    x[:, 4] = 0.1  # constant, but not exactly after centring
    for matrix in (x, sp.csr_array(x), sp.csr_matrix(x)):
        features = Features(matrix)
        assert_allclose(features.means, x.mean(0), atol=1e-15)
        assert_allclose(features.squares, (x**2).sum(0))
        expected = ((x - x.mean(0)) ** 2).sum(0)
        assert_allclose(features.centred_squares, expected, atol=1e-15)
        assert_array_equal(features.centred_squares[[2, 4]], 0.0)
        rest = features.without(3).matrix
        rest = rest.toarray() if sp.issparse(rest) else rest
        assert_array_equal(rest, np.delete(x, 3, 0))


def _stored(x, kind):
    """The matrix x, stored in a roundabout way, and what it must stay afterwards."""
    plain = sp.csr_array(x)
    twice = np.repeat(plain.indices, 2)
    if kind == "halves":
        data = np.repeat(plain.data / 2.0, 2)
        return sp.csr_array((data, twice, 2 * plain.indptr), shape=x.shape)
    if kind == "cancelling":  # 3 x - 2 x
        data = np.stack([3.0 * plain.data, -2.0 * plain.data], 1).ravel()
        return sp.csr_array((data, twice, 2 * plain.indptr), shape=x.shape)
    if kind == "explicit zeros":
        full = sp.csr_array(x + 1.0)
        full.data = full.data - 1.0
        return full
    if kind == "columns":
        turned = sp.csc_array(x)
        data, rows = np.repeat(turned.data / 2.0, 2), np.repeat(turned.indices, 2)
        return sp.csc_array((data, rows, 2 * turned.indptr), shape=x.shape)
    if kind == "coordinates":
        rows, columns = np.nonzero(x)
        data = np.concatenate([x[rows, columns] / 4, 3 * x[rows, columns] / 4])
        places = (np.tile(rows, 2), np.tile(columns, 2))
        return sp.coo_array((data, places), shape=x.shape)
    unsorted = plain.copy()
    for start, end in pairwise(unsorted.indptr):
        for part in (unsorted.data, unsorted.indices):
            part[start:end] = part[start:end][::-1].copy()
    unsorted.has_sorted_indices = False
    return unsorted


KINDS = ("halves", "cancelling", "explicit zeros", "columns", "coordinates", "unsorted")


@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_matter_how_a_sparse_matrix_is_stored(kind):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(9, 4)) * (rng.random((9, 4)) < 0.6)
    matrix = _stored(x, kind)
    before = matrix.copy()
    found, wanted = Features(matrix), Features(x)
    assert_allclose(found.means, wanted.means)
    assert_allclose(found.squares, wanted.squares)
    assert_allclose(found.centred_squares, wanted.centred_squares)
    assert matrix.nnz == before.nnz  # what was given is left as it is
    assert_array_equal(matrix.data, before.data)
    y = rng.normal(size=9)
    for model in (
        BayesianDropoutRegression(0.3),
        BayesianDropoutRegression(0.3, drop_to="mean"),
        BayesianDropoutRegression(0.3, solver="krylov"),
        BayesianDropoutRegression(0.3, groups=[0, 0, 1, 1], fit_intercept=False),
        BayesianDropoutRegressionCV(drop_rates=(0.2, 0.7)),
    ):
        sparse, dense = clone(model).fit(matrix, y), clone(model).fit(x, y)
        assert_allclose(sparse.coef_, dense.coef_, rtol=1e-7, atol=1e-12)
        assert_allclose(sparse.predict(matrix), dense.predict(x), rtol=1e-7)
        got, exact = sparse.predictive(matrix), dense.predictive(x)
        assert_allclose(got.scale, exact.scale, rtol=1e-7)
        got, exact = sparse.dropped_predictive(matrix), dense.dropped_predictive(x)
        assert_allclose(got.mean, exact.mean, rtol=1e-7, atol=1e-12)
    labels = (y > 0).astype(int)
    sparse, dense = (BayesianDropoutClassifier(0.3).fit(m, labels) for m in (matrix, x))
    assert_allclose(sparse.predict_proba(matrix), dense.predict_proba(x), rtol=1e-7)
    paths = [dropout_path(m, y, [0.1, 0.8], fit_intercept=True) for m in (matrix, x)]
    assert_allclose(paths[0].coefs, paths[1].coefs, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.int32, np.int8, bool, np.float32])
def test_types_of_sparse_matrices(dtype):
    x = (np.random.default_rng(2).random((9, 3)) < 0.5).astype(dtype)
    y = np.arange(9.0)
    found = BayesianDropoutRegression(0.3).fit(sp.csr_array(x), y)
    wanted = BayesianDropoutRegression(0.3).fit(x.astype(np.float64), y)
    assert_allclose(found.coef_, wanted.coef_)
