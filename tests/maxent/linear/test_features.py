"""Column sums of dense and sparse data."""

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

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
