"""Exact factorisations of the whitened posterior precision, primal and dual.

In whitened coordinates the rows are Z and the posterior precision is Z'Z + I, times
1/v. The primal form factorises this p by p matrix, the dual form the n by n matrix
I + ZZ' (ledger E43), and both answer the same questions.
"""

from abc import ABC, abstractmethod
from typing import final

import numpy as np
import scipy.linalg
import scipy.linalg.lapack as lapack

from caveat.errors import ParameterError
from caveat.maxent.linear.arrays import Array
from caveat.maxent.linear.rows import ShiftedRows

_CHUNK = 1 << 22  # numbers in one block of right-hand sides


class Factor(ABC):
    """A factorised posterior precision.

    Parameters
    ----------
    rows : ShiftedRows
        Z, the whitened rows.
    """

    def __init__(self, rows: ShiftedRows) -> None:
        self.rows = rows

    log_det: float
    """log|Z'Z + penalty|, in whitened coordinates; equal to log|I + ZZ'|."""

    @abstractmethod
    def solve(self, y: Array) -> tuple[Array, Array]:
        """Whitened posterior mean and residuals for the response ``y``."""

    @abstractmethod
    def apply_inverse(self, directions: Array) -> Array:
        """(Z'Z + I)^-1 u of columns u; shape (p, k)."""

    @abstractmethod
    def _quadratic(self, directions: ShiftedRows) -> Array:
        """u'(Z'Z + I)^-1 u of a moderate number of rows u."""

    @abstractmethod
    def complement(self) -> Array:
        """Diagonal of I - Z (Z'Z + I)^-1 Z', shape (n,)."""

    @abstractmethod
    def deviates(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draws from N(0, (Z'Z + I)^-1); shape (p, draws)."""

    def quadratic(self, directions: ShiftedRows) -> Array:
        """u'(Z'Z + I)^-1 u of each row u of ``directions``."""
        step = max(_CHUNK // min(len(self.rows), self.rows.n_features), 1)
        starts = range(0, len(directions), step)
        parts = [self._quadratic(directions.take(slice(i, i + step))) for i in starts]
        return np.concatenate(parts) if parts else np.zeros(0)


@final
class PrimalFactor(Factor):
    """Cholesky factor of the p by p matrix; right for p <= n.

    Parameters
    ----------
    rows : ShiftedRows
        Z.
    penalty : array, shape (p,)
        Prior precision of the whitened weights, 1 or (flat) 0.
    """

    def __init__(self, rows: ShiftedRows, penalty: Array) -> None:
        super().__init__(rows)
        self._penalty = penalty
        precision = rows.scatter()
        precision[np.diag_indices_from(precision)] += penalty
        self._lower = _cholesky(precision)
        self.log_det = _log_det(self._lower)

    def solve(self, y: Array) -> tuple[Array, Array]:
        mean = self.apply_inverse(self.rows.transposed_times(y))
        residual = y - self.rows.times(mean)
        # One refinement undoes most of what squaring the condition number costs.
        gap = self.rows.transposed_times(residual) - self._penalty * mean
        mean = mean + self.apply_inverse(gap)
        return mean, y - self.rows.times(mean)

    def apply_inverse(self, directions: Array) -> Array:
        return scipy.linalg.cho_solve((self._lower, True), directions)

    def _quadratic(self, directions: ShiftedRows) -> Array:
        half = _forward(self._lower, directions.dense().T.copy())
        return np.einsum("ij,ij->j", half, half)

    def complement(self) -> Array:
        return 1.0 - self.quadratic(self.rows)

    def deviates(self, n_draws: int, rng: np.random.Generator) -> Array:
        standard = rng.standard_normal((self.rows.n_features, n_draws))
        return scipy.linalg.solve_triangular(self._lower, standard, lower=True, trans=1)


@final
class DualFactor(Factor):
    """Cholesky factor of I + ZZ', n by n; the p by p matrix is never formed.

    Parameters
    ----------
    rows : ShiftedRows
        Z, with a proper prior for every feature.
    """

    def __init__(self, rows: ShiftedRows) -> None:
        super().__init__(rows)
        # E43: I + G with G = (1 - f)^2 X A^-1 X'
        gram = rows.lower_gram()
        gram[np.diag_indices_from(gram)] += 1.0
        self._lower = _cholesky(gram)
        self.log_det = _log_det(self._lower)

    def solve(self, y: Array) -> tuple[Array, Array]:
        # E43: alpha = (I + G)^-1 y;  mu = (1 - f) A^-1 X' alpha
        alpha = scipy.linalg.cho_solve((self._lower, True), y)
        return self.rows.transposed_times(alpha), alpha

    def apply_inverse(self, directions: Array) -> Array:
        inner = scipy.linalg.cho_solve((self._lower, True), self.rows.times(directions))
        return directions - self.rows.transposed_times(inner)

    def _quadratic(self, directions: ShiftedRows) -> Array:
        # E43: u'Lambda^-1 u = sum_d u_d^2 / A_dd - (1 - f)^2 k'(I + G)^-1 k
        half = _forward(self._lower, self.rows.cross(directions))
        squares = np.einsum("ij,ij->j", half, half)
        return np.maximum(directions.square_sums() - squares, 0.0)

    def complement(self) -> Array:
        inverse, _ = lapack.dpotri(self._lower, lower=1)
        return np.diag(inverse).copy()

    def deviates(self, n_draws: int, rng: np.random.Generator) -> Array:
        prior = rng.standard_normal((self.rows.n_features, n_draws))
        noise = rng.standard_normal((len(self.rows), n_draws))
        pull = scipy.linalg.cho_solve(
            (self._lower, True), self.rows.times(prior) + noise
        )
        return prior - self.rows.transposed_times(pull)


def _cholesky(matrix: Array) -> Array:
    try:
        return scipy.linalg.cholesky(
            matrix, lower=True, overwrite_a=True, check_finite=False
        )
    except np.linalg.LinAlgError:
        raise ParameterError(
            "The posterior is improper: some combination of features is held neither "
            "by the data nor by a prior. Set prior_precision above 0, or give the "
            "features a drop rate above 0."
        ) from None


def _log_det(lower: Array) -> float:
    return 2.0 * float(np.log(np.diag(lower)).sum())


def _forward(lower: Array, right: Array) -> Array:
    """Solve with the factor; ``right`` is used up."""
    return scipy.linalg.solve_triangular(
        lower, right, lower=True, overwrite_b=True, check_finite=False
    )
