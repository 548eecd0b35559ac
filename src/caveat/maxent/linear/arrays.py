"""The kinds of array that the linear model works with."""

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Matrix: TypeAlias = Any  # a float64 array, or a sparse matrix or array in CSR form


def is_sparse(matrix: Matrix) -> bool:
    """Whether the matrix is stored as its non-zeros."""
    return bool(sp.issparse(matrix))


def canonical(matrix: Matrix) -> Matrix:
    """A dense matrix as it is, a sparse one as CSR in which no place is stored twice.

    Repeated entries add up, so nothing but sums can be told from ``data`` before. What
    was given is left as it is.
    """
    if not is_sparse(matrix):
        return matrix
    found = matrix.tocsr()
    if found.has_canonical_format:
        return found
    found = found.copy()
    found.sum_duplicates()
    return found


def scale_columns(matrix: Matrix, scale: Array) -> Matrix:
    """The matrix with each column multiplied; a sparse copy shares its indices."""
    if not is_sparse(matrix):
        return matrix * scale
    return with_data(matrix, matrix.data * scale[matrix.indices])


def with_data(matrix: Matrix, data: Array) -> Matrix:
    """A CSR matrix with the same non-zero places and other values."""
    return type(matrix)((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def column_sums(matrix: Matrix, weights: Array) -> Array:
    """Sums over rows of the stored values ``weights`` of a CSR matrix."""
    sums = np.bincount(matrix.indices, weights, minlength=matrix.shape[1])
    return np.asarray(sums, dtype=np.float64)


def row_square_sums(matrix: Matrix) -> Array:
    """Sum of squares of each row."""
    if not is_sparse(matrix):
        return np.einsum("ij,ij->i", matrix, matrix)
    squares = np.append(np.square(matrix.data), 0.0)
    sums = np.add.reduceat(squares, matrix.indptr[:-1]) if len(matrix.indptr) > 1 else 0
    return np.where(np.diff(matrix.indptr) > 0, sums, 0.0)
