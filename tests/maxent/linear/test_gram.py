"""Products of sparse rows, with columns of every frequency."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from caveat.maxent.linear import gram
from caveat.maxent.linear.gram import cross_gram, lower_gram


def zipf(n, p, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) * (rng.random((n, p)) < 1.0 / np.arange(1, p + 1))
    return sp.csr_array(x)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(gram, "_ROWS", 16)
    monkeypatch.setattr(gram, "_COLUMNS", 3)


def test_lower_gram_is_the_lower_triangle():
    x = zipf(50, 300, seed=0)
    dense = x.toarray()
    assert_allclose(np.tril(lower_gram(x)), np.tril(dense @ dense.T), atol=1e-12)


def test_cross_gram_is_the_product():
    left, right = zipf(50, 300, seed=1), zipf(37, 300, seed=2)
    expected = left.toarray() @ right.toarray().T
    assert_allclose(cross_gram(left, right), expected, atol=1e-12)
    assert_allclose(cross_gram(left, right[:0]), np.zeros((50, 0)))


@pytest.mark.parametrize("share", [0.0, 2.0])  # all columns dense, all sparse
def test_either_way_gives_the_same(monkeypatch, share):
    monkeypatch.setattr(gram, "_FREQUENT", share)
    x = sp.csr_matrix(zipf(20, 90, seed=3))
    dense = x.toarray()
    assert_allclose(np.tril(lower_gram(x)), np.tril(dense @ dense.T), atol=1e-12)
    assert_allclose(cross_gram(x, x), dense @ dense.T, atol=1e-12)
