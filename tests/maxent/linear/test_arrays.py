"""Sparse helpers against their dense twins."""

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose

from caveat.maxent.linear.arrays import row_square_sums, scale_columns

DENSE = np.array([[0.0, 2.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, 4.0], [0.0, 0.0, 0.0]])


def test_row_square_sums_with_empty_rows():
    for matrix in (DENSE, sp.csr_matrix(DENSE), sp.csr_array(DENSE)):
        assert_allclose(row_square_sums(matrix), [4.0, 0.0, 25.0, 0.0])
    assert row_square_sums(sp.csr_array((0, 3))).shape == (0,)
    assert_allclose(row_square_sums(sp.csr_array((2, 3))), [0.0, 0.0])


def test_scaling_leaves_the_original_alone():
    scale = np.array([1.0, 10.0, 100.0])
    matrix = sp.csr_array(DENSE)
    assert_allclose(scale_columns(matrix, scale).toarray(), DENSE * scale)
    assert_allclose(matrix.toarray(), DENSE)
    assert_allclose(scale_columns(DENSE, scale), DENSE * scale)
