"""Posterior means by conjugate gradients and Lanczos: products with the rows only.

.. [Paige1972] C. C. Paige. Computational variants of the Lanczos method for the
   eigenproblem. IMA Journal of Applied Mathematics 10, 1972.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.linalg

from caveat.errors import ParameterError
from caveat.maxent.linear.arrays import Array
from caveat.maxent.linear.rows import ShiftedRows

_MOST = 10_000  # iterations before giving up
_LOOK = 4  # Lanczos steps between two looks at the residual


class Solved(NamedTuple):
    """Whitened posterior mean, residuals, and the iterations that they took."""

    mean: Array
    residual: Array
    n_iter: int


def solve(
    rows: ShiftedRows, y: Array, *, tol: float, start: Array | None = None
) -> Solved:
    """Whitened posterior mean by preconditioned conjugate gradients.

    On the smaller of the two systems, (I + ZZ') alpha = y or (I + Z'Z) W = Z'y.

    Parameters
    ----------
    rows : ShiftedRows
        Z, with a proper prior for every feature.
    y : array, shape (n,)
        The response.
    tol : float
        Bound on the relative residual of the system.
    start : array, optional
        A guess of the residuals alpha, used if the n by n system is solved.

    Returns
    -------
    Solved
    """
    if len(rows) <= rows.n_features:
        alpha, n_iter = conjugate_gradients(
            lambda a: a + rows.times(rows.transposed_times(a)),
            y,
            diagonal=1.0 + rows.square_sums(),
            tol=tol,
            start=start,
        )
        return Solved(rows.transposed_times(alpha), alpha, n_iter)
    mean, n_iter = conjugate_gradients(
        lambda w: w + rows.transposed_times(rows.times(w)),
        rows.transposed_times(y),
        diagonal=np.ones(rows.n_features),
        tol=tol,
    )
    return Solved(mean, y - rows.times(mean), n_iter)


def conjugate_gradients(
    product: Callable[[Array], Array],
    right: Array,
    *,
    diagonal: Array,
    tol: float,
    start: Array | None = None,
) -> tuple[Array, int]:
    """Solve a symmetric positive definite system, scaled by its diagonal.

    Parameters
    ----------
    product : callable
        The matrix times a vector.
    right : array, shape (n,)
        The right-hand side.
    diagonal : array, shape (n,)
        Of the matrix, or near it.
    tol : float
        Bound on the relative residual.
    start : array, shape (n,), optional
        First guess.

    Returns
    -------
    solution : array, shape (n,)
    n_iter : int
    """
    guess = np.zeros_like(right) if start is None else start.copy()
    residual = right.copy() if start is None else right - product(guess)
    goal = tol * float(np.linalg.norm(right))
    scaled = residual / diagonal
    step, power = scaled.copy(), float(residual @ scaled)
    for n_iter in range(_MOST):
        if float(np.linalg.norm(residual)) <= goal:
            return guess, n_iter
        image = product(step)
        length = power / float(step @ image)
        guess += length * step
        residual -= length * image
        scaled = residual / diagonal
        before, power = power, float(residual @ scaled)
        step *= power / before
        step += scaled
    raise ParameterError(
        f"Conjugate gradients did not reach tol={tol:g} in {_MOST} iterations. Raise "
        f"prior_precision or tol, or pass solver='dual'."
    )


def solve_shifted(rows: ShiftedRows, y: Array, gains: Array, *, tol: float) -> Array:
    """Solve (I + g ZZ') alpha = y for many g from one Krylov space (ledger E50).

    Lanczos with full reorthogonalisation: V'ZZ'V is a small tridiagonal matrix, and
    alpha = |y| V (I + g V'ZZ'V)^-1 e_1 for every g.

    Parameters
    ----------
    rows : ShiftedRows
        Z.
    y : array, shape (n,)
        The response.
    gains : array, shape (k,)
        The numbers g >= 0.
    tol : float
        Bound on the relative residual for each g.

    Returns
    -------
    array, shape (n, k)
        A column alpha per g.
    """
    norm = float(np.linalg.norm(y))
    if norm == 0.0:
        return np.zeros((len(y), len(gains)))
    space = _Lanczos(rows, y / norm)
    while True:
        ended = space.grow() or space.size == len(y)
        if space.size % _LOOK and not ended:
            continue
        small = space.solutions(gains)
        # E50: the residual of g is g beta_k times the last entry of its solution
        if ended or float(np.abs(gains * space.beside[-1] * small[-1]).max()) <= tol:
            return norm * (space.basis[: space.size].T @ small)


class _Lanczos:
    """A growing orthonormal basis of y, ZZ'y, (ZZ')²y, … [Paige1972]_."""

    def __init__(self, rows: ShiftedRows, first: Array) -> None:
        self._rows = rows
        self.size = 0
        self.basis = np.empty((64, len(first)))
        self.basis[0] = first
        self.diagonal: list[float] = []
        self.beside: list[float] = []

    def grow(self) -> bool:
        """Take one more vector in; True if there is nothing more to find."""
        self.size += 1
        known = self.basis[: self.size]
        image = self._rows.times(self._rows.transposed_times(known[-1]))
        self.diagonal.append(float(known[-1] @ image))
        for _ in range(2):
            image -= known.T @ (known @ image)
        self.beside.append(float(np.linalg.norm(image)))
        if self.beside[-1] <= 1e-14 * max(self.diagonal):
            return True
        if self.size == len(self.basis):
            self.basis = np.concatenate([self.basis, np.empty_like(self.basis)])
        self.basis[self.size] = image / self.beside[-1]
        return False

    def solutions(self, gains: Array) -> Array:
        """(I + g T)^-1 e_1 of the tridiagonal T, a column per g."""
        values, vectors = scipy.linalg.eigh_tridiagonal(self.diagonal, self.beside[:-1])
        # E50: alpha = |y| V Q (1 + g theta)^-1 Q' e_1, T = Q diag(theta) Q'
        damped = 1.0 + np.outer(np.maximum(values, 0.0), gains)
        return vectors @ (vectors[0][:, None] / damped)
