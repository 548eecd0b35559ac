"""Ridge regression by evidence: the exact Bayesian linear model, robust if asked."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from caveat.estimators.tables.normals import NormalSource

Array = NDArray[np.float64]

_ROUNDS = 100
_TOLERANCE = 1e-4
_TINY = 1e-10
PLAIN, ROBUST, SPARSE = "plain", "robust", "sparse"
_SPARSE_ROUNDS = 15
_LEAST_RELEVANCE = 1e-6
# With more columns than rows the evidence believes in a perfect fit, so a sparse model
# takes at least this share of the variance for noise.
_LEAST_SPARSE = 0.2
_HUBER = 2.0  # robust standard deviations beyond which a residual is pulled in
_HUBER_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Ridge:
    """y = b + x w + noise with w ~ N(0, 1/prior), both precisions by evidence.

    Attributes
    ----------
    mean, scale : array, shape (columns,)
        Standard units of the columns.
    weights : array, shape (columns, outputs)
    intercept : array, shape (outputs,)
    basis : array, shape (columns, rank)
        Directions that the rows tell of.
    spread : array, shape (rank, outputs)
        Posterior standard deviation along them.
    free : array, shape (outputs,)
        The same along all others: that of the prior.
    level : array, shape (outputs,)
        Posterior standard deviation of the intercept.
    """

    mean: Array
    scale: Array
    weights: Array
    intercept: Array
    basis: Array
    spread: Array
    free: Array
    level: Array

    @classmethod
    def fit(
        cls,
        x: Array,
        y: Array,
        *,
        weight: Array | None = None,
        kind: str = PLAIN,
        pulls: bool = True,
    ) -> Self:
        """Of rows x (rows, columns) and y (rows, outputs), with weights (rows,).

        ``kind`` is ``"plain"``, ``"robust"`` (far residuals are pulled in), or
        ``"sparse"``, which is robust, too: columns of little weight get a prior ever
        closer to 0, shared by all outputs, as the lasso would have it. Without
        ``pulls`` no residual is pulled in.
        """
        share = np.full(len(x), 1.0) if weight is None else weight
        total = share.sum()
        mean = share @ x / total
        scale = np.sqrt(share @ np.square(x - mean) / total)
        scale = np.where(scale > _TINY, scale, 1.0)
        root = np.sqrt(share)[:, None]
        z = (x - mean) / scale * root
        if kind == SPARSE:
            counts = relevance(z, y, share)
            z, scale = z * counts, scale / counts
        space = _Space.of(z)
        columns = [
            _one(space, y[:, d], share, kind=kind, pulls=pulls and kind != PLAIN)
            for d in range(y.shape[1])
        ]
        weights, intercept, spread, free, level = (
            np.stack(part, -1) for part in zip(*columns, strict=True)
        )
        return cls(mean, scale, weights, intercept, space.basis, spread, free, level)

    def predict(self, x: Array) -> Array:
        """Means, shape (rows, outputs)."""
        return (x - self.mean) / self.scale @ self.weights + self.intercept

    def draws(self, x: Array, n_draws: int, rng: NormalSource) -> Array:
        """Functions from the posterior, shape (draws, rows, outputs)."""
        z = (x - self.mean) / self.scale
        along = z @ self.basis
        rank, outputs = self.spread.shape
        inside = along @ (rng.standard_normal((n_draws, rank, outputs)) * self.spread)
        found = inside + z @ self.weights + self.intercept
        found += self.level * rng.standard_normal((n_draws, 1, outputs))
        rest = z - along @ self.basis.T
        rest[np.abs(rest).max(1, initial=0.0) <= 1e-8] = 0.0  # whatever other rows are
        if rest.any():
            outside = rng.standard_normal((n_draws, x.shape[1], outputs))
            found += rest @ (outside * self.free)
        return found


@dataclass(frozen=True)
class _Space:
    """The singular values and vectors of weighted, standardised columns."""

    left: Array
    values: Array
    basis: Array

    @classmethod
    def of(cls, z: Array) -> Self:
        """By the smaller of the two Gram matrices."""
        if z.shape[0] <= z.shape[1]:
            squares, left = np.linalg.eigh(z @ z.T)
            keep = squares > _TINY * max(squares.max(initial=0.0), 1.0) * len(z)
            values = np.sqrt(squares[keep])
            return cls(left[:, keep], values, z.T @ left[:, keep] / values)
        squares, basis = np.linalg.eigh(z.T @ z)
        keep = squares > _TINY * max(squares.max(initial=0.0), 1.0) * z.shape[1]
        values = np.sqrt(squares[keep])
        return cls(z @ basis[:, keep] / values, values, basis[:, keep])


def relevance(z: Array, y: Array, share: Array) -> Array:
    """Factors on columns: roots of their weights, again and again (a lasso).

    Parameters
    ----------
    z : array, shape (rows, columns)
        Centred, times the roots of the weights of the rows.
    y : array, shape (rows, outputs)
        Targets.
    share : array, shape (rows,)
        Weights of the rows.

    Returns
    -------
    array, shape (columns,)
        The largest is 1.
    """
    counts = np.ones(z.shape[1])
    for _ in range(_SPARSE_ROUNDS):
        space = _Space.of(z * counts)
        own = [
            _evidence(space, y[:, d], share, _LEAST_SPARSE)[0]
            for d in range(y.shape[1])
        ]
        size = np.sqrt(np.abs(np.stack(own)).max(0) * counts)
        largest = size.max(initial=0.0)
        if not largest:
            return np.ones(z.shape[1])
        counts = np.maximum(size / largest, _LEAST_RELEVANCE)
    return counts


def _one(
    space: _Space, y: Array, share: Array, *, kind: str, pulls: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """Weights, intercept, and standard deviations of one output."""
    least = _LEAST_SPARSE if kind == SPARSE else _TINY
    found = _evidence(space, y, share, least)
    if pulls:
        for _ in range(_HUBER_ROUNDS):
            # Residuals beyond the limit count as if they lay on it (Huber 1981).
            fitted = found[-1]
            gap = y - fitted
            limit = _HUBER * max(1.4826 * float(np.median(np.abs(gap))), _TINY)
            if limit <= 10 * _TINY:
                break
            found = _evidence(space, fitted + np.clip(gap, -limit, limit), share, least)
    return found[:5]


def _evidence(
    space: _Space, y: Array, share: Array, least: float
) -> tuple[Array, Array, Array, Array, Array, Array]:
    """MacKay's fixed point; the noise is at least a share ``least`` of the variance."""
    root, total = np.sqrt(share), share.sum()
    centre = np.asarray(share @ y / total)
    target = (y - centre) * root
    along = space.left.T @ target
    squares = np.square(space.values)
    whole = float(target @ target)
    rows = max(float((share > 0).sum()), 1.0)
    noise = rows / whole if whole > 0 else 1.0 / _TINY
    prior = 1.0
    for _ in range(_ROUNDS):
        before = noise, prior
        shrunk = noise * space.values * along / (prior + noise * squares)
        used = float((noise * squares / (prior + noise * squares)).sum())
        fitted = space.values * shrunk
        rest = whole - 2.0 * float(fitted @ along) + float(fitted @ fitted)
        rest = max(rest, least * whole, _TINY * _TINY)
        size = max(float(shrunk @ shrunk), _TINY)
        prior = (used + 2e-6) / (size + 2e-6)
        noise = max(rows - 1.0 - used, 0.1 * rows) / rest
        change = max(abs(np.log(noise / before[0])), abs(np.log(prior / before[1])))
        if change < _TOLERANCE:
            break
    shrunk = noise * space.values * along / (prior + noise * squares)
    spread = 1.0 / np.sqrt(prior + noise * squares)
    fitted = centre + space.left @ (space.values * shrunk) / np.maximum(root, _TINY)
    level = np.asarray(1.0 / np.sqrt(noise * total))
    free = np.asarray(1.0 / np.sqrt(prior))
    return space.basis @ shrunk, centre, spread, free, level, fitted
