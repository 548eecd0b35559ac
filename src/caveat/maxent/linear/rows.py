"""A matrix whose rows all have the same vector taken off, without doing so if sparse.

Centring makes a sparse matrix dense. ``ShiftedRows`` keeps the matrix M and the vector
q apart and puts M - 1 q' into every product instead.
"""

from dataclasses import dataclass
from typing import Self, final

import numpy as np

from caveat.maxent.linear.arrays import Array, Matrix, is_sparse, row_square_sums
from caveat.maxent.linear.gram import cross_gram, lower_gram


@final
@dataclass(frozen=True, eq=False)
class ShiftedRows:
    """M - 1 q', n rows of p features.

    Attributes
    ----------
    matrix : array or CSR matrix, shape (n, p)
        M.
    shift : array, shape (p,), or None
        q; None if nothing is taken off, as is always so for a dense M.
    """

    matrix: Matrix
    shift: Array | None = None

    @classmethod
    def less(cls, matrix: Matrix, shift: Array | None) -> Self:
        """The rows of ``matrix``, each less ``shift``."""
        if shift is None or is_sparse(matrix):
            return cls(matrix, shift)
        return cls(matrix - shift)

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.matrix.shape[1])

    def take(self, rows: slice) -> "ShiftedRows":
        """Some of the rows."""
        return ShiftedRows(self.matrix[rows], self.shift)

    def times(self, weights: Array) -> Array:
        """(M - 1 q') w for one column w, or several."""
        product = np.asarray(self.matrix @ weights)
        return product if self.shift is None else product - self.shift @ weights

    def transposed_times(self, values: Array) -> Array:
        """(M - 1 q')' a for one column a, or several."""
        product = np.asarray(self.matrix.T @ values)
        if self.shift is None:
            return product
        total = values.sum(0)
        return product - (
            self.shift * total if values.ndim == 1 else np.outer(self.shift, total)
        )

    def square_sums(self) -> Array:
        """Squared length of each row."""
        squares = row_square_sums(self.matrix)
        if self.shift is None:
            return squares
        cross = np.asarray(self.matrix @ self.shift)
        return np.maximum(squares - 2.0 * cross + self.shift @ self.shift, 0.0)

    def lower_gram(self) -> Array:
        """Products of all rows with all rows, n by n; only its lower triangle holds."""
        if not is_sparse(self.matrix):
            return self.matrix @ self.matrix.T
        gram = lower_gram(self.matrix)
        if self.shift is not None:
            along = np.asarray(self.matrix @ self.shift)
            gram -= along[:, None]
            gram -= along
            gram += self.shift @ self.shift
        return gram

    def scatter(self) -> Array:
        """Products of all features with all features, p by p."""
        product = self.matrix.T @ self.matrix
        if not is_sparse(self.matrix):
            return np.asarray(product)
        dense = product.toarray()
        if self.shift is None:
            return dense
        sums = np.asarray(self.matrix.sum(0)).ravel()
        cross = np.outer(sums, self.shift)
        return dense - cross - cross.T + len(self) * np.outer(self.shift, self.shift)

    def cross(self, other: "ShiftedRows") -> Array:
        """Products of these rows with those of ``other``, shape (n, rows of other)."""
        sparse = is_sparse(self.matrix) and is_sparse(other.matrix)
        product = (
            cross_gram(self.matrix, other.matrix)
            if sparse
            else np.asarray(self.matrix @ other.matrix.T)
        )
        if other.shift is not None:
            product -= np.asarray(self.matrix @ other.shift)[:, None]
        if self.shift is not None:
            product -= np.asarray(other.matrix @ self.shift)
        if self.shift is not None and other.shift is not None:
            product += self.shift @ other.shift
        return product

    def dense(self) -> Array:
        """All of it as an array."""
        whole = self.matrix.toarray() if is_sparse(self.matrix) else self.matrix
        return whole if self.shift is None else whole - self.shift
