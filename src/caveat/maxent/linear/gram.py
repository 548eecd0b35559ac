"""Products of sparse rows with sparse rows, as dense arrays.

A bag of words has a few columns that nearly every row holds and very many that few rows
hold. The product of the frequent columns is dense work and goes to BLAS; that of the
rare ones is left to the sparse product, which then has little to do. Rows are taken
in blocks, so that nothing larger than the answer is held.
"""

import numpy as np
import scipy.linalg.blas as blas

from caveat.maxent.linear.arrays import Array, Matrix

_FREQUENT = 1 / 40  # share of rows from which a column is cheaper dense
_COLUMNS = 256  # frequent columns made dense at a time
_ROWS = 512  # rows of the sparse product at a time


def lower_gram(matrix: Matrix) -> Array:
    """The lower triangle of ``matrix @ matrix.T`` (the upper one is not meaningful)."""
    n_rows = matrix.shape[0]
    frequent, rare = _split(matrix, matrix)
    gram = np.zeros((n_rows, n_rows), order="F")
    for columns in _pieces(frequent):
        dense = matrix[:, columns].toarray(order="F")
        gram = blas.dsyrk(1.0, dense, beta=1.0, c=gram, lower=1, overwrite_c=1)
    scarce = matrix[:, rare]
    turned = scarce.T.tocsr()
    for rows in _blocks(n_rows):
        gram[:, rows] += (scarce[rows] @ turned).toarray().T
    return gram


def cross_gram(left: Matrix, right: Matrix) -> Array:
    """``left @ right.T`` of two sparse matrices with the same columns."""
    frequent, rare = _split(left, right)
    product = np.zeros((left.shape[0], right.shape[0]), order="F")
    for columns in _pieces(frequent):
        factors = (part[:, columns].toarray(order="F") for part in (left, right))
        product = blas.dgemm(
            1.0, *factors, beta=1.0, c=product, trans_b=1, overwrite_c=1
        )
    scarce, turned = right[:, rare], left[:, rare].T.tocsr()
    for rows in _blocks(right.shape[0]):
        product[:, rows] += (scarce[rows] @ turned).toarray().T
    return product


def _split(left: Matrix, right: Matrix) -> tuple[np.ndarray, np.ndarray]:
    """Columns that are frequent in both, and those that are rare but in both."""
    counts = [np.bincount(m.indices, minlength=m.shape[1]) for m in (left, right)]
    work = counts[0].astype(np.float64) * counts[1]
    frequent = work > _FREQUENT**2 * left.shape[0] * right.shape[0]
    return np.flatnonzero(frequent), np.flatnonzero(~frequent & (work > 0))


def _blocks(n_rows: int) -> list[slice]:
    return [slice(i, i + _ROWS) for i in range(0, n_rows, _ROWS)]


def _pieces(columns: np.ndarray) -> list[np.ndarray]:
    return [columns[i : i + _COLUMNS] for i in range(0, len(columns), _COLUMNS)]
