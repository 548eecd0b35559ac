"""The data of a fit and what is asked of it again and again."""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from caveat.maxent.linear.arrays import Array, Matrix, canonical, column_sums, is_sparse


@final
@dataclass(frozen=True, eq=False)
class Features:
    """The n by p matrix of covariates, dense or CSR, with its column sums.

    Entries of a sparse matrix that are stored more than once are added up.

    Many drop rates and prior precisions can be tried on one ``Features``.

    Attributes
    ----------
    matrix : array or CSR matrix, shape (n, p)
    """

    matrix: Matrix

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrix", canonical(self.matrix))

    @property
    def n_rows(self) -> int:
        """n, the number of observations."""
        return int(self.matrix.shape[0])

    @property
    def n_features(self) -> int:
        """p, the number of features."""
        return int(self.matrix.shape[1])

    @cached_property
    def means(self) -> Array:
        """Mean of each column."""
        if is_sparse(self.matrix):
            return column_sums(self.matrix, self.matrix.data) / self.n_rows
        return self.matrix.mean(0)

    @cached_property
    def squares(self) -> Array:
        """Sum of squares of each column: the diagonal of Lambda1."""
        if is_sparse(self.matrix):
            return column_sums(self.matrix, np.square(self.matrix.data))
        return np.einsum("ij,ij->j", self.matrix, self.matrix)

    @cached_property
    def centred_squares(self) -> Array:
        """Sum of squared deviations of each column from its mean; rounding is 0."""
        if is_sparse(self.matrix):
            deviations = self.matrix.data - self.means[self.matrix.indices]
            stored = column_sums(self.matrix, np.square(deviations))
            counts = np.bincount(self.matrix.indices, minlength=self.n_features)
            found = stored + (self.n_rows - counts) * np.square(self.means)
        else:
            found = np.square(self.matrix - self.means).sum(0)
        constant = found <= self.squares * (8 * np.finfo(np.float64).eps) ** 2
        return np.where(constant, 0.0, found)

    def without(self, row: int) -> "Features":
        """The same without one observation."""
        kept = np.delete(np.arange(self.n_rows), row)
        return Features(self.matrix[kept])
