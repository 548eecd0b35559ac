"""Thresholds of all stages chosen together, exactly on the rows at hand.

Row i is answered by the first stage k whose doubt is at most its threshold,
s_k(i) ≤ t_k; the last stage answers the rest. It costs what all stages up to k cost.
Mean loss and mean cost of *every* combination of thresholds on a grid follow from
cumulative sums of histograms, without a look at the rows for each.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from caveat.errors import ParameterError

Array = NDArray[np.float64]
Thresholds = tuple[float, ...]

_CELLS = 2**20  # combinations of thresholds that are looked at


@final
@dataclass(frozen=True, eq=False)
class Trial:
    """What every stage says of every row.

    Attributes
    ----------
    doubt : array, shape (stages - 1, rows)
        Of all stages but the last.
    loss : array, shape (stages, rows)
        Of the answers of each stage.
    cost : array, shape (stages,)
        Of one row.
    """

    doubt: Array
    loss: Array
    cost: Array

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.loss.shape[1]

    def stage(self, thresholds: Thresholds) -> NDArray[np.int64]:
        """The stage that answers each row."""
        limits = np.reshape(thresholds, (-1, 1))
        sure = np.vstack([self.doubt <= limits, np.ones((1, self.n_rows), bool)])
        return sure.argmax(0)


@final
@dataclass(frozen=True, eq=False)
class Surface:
    """Mean loss and cost of all combinations of thresholds.

    Attributes
    ----------
    thresholds : list of arrays
        Of each stage but the last, growing; from -inf, nothing is answered there, to
        inf, everything is.
    loss, cost : array, shape (thresholds of stage 0, thresholds of stage 1, …)
        Means over the rows.
    """

    thresholds: list[Array]
    loss: Array
    cost: Array

    def best(self, aim: Array, limited: Array, limit: float, name: str) -> Thresholds:
        """The thresholds of smallest ``aim`` with ``limited`` at most ``limit``.

        Of equal ones that of the smallest ``limited``.
        """
        allowed = limited <= limit * (1 + 1e-12)
        if not allowed.any():
            raise ParameterError(
                f"{name} must be at least {limited.min():.6g}, the least that these "
                f"stages can reach on these rows. Got {limit:.6g}."
            )
        lowest = aim[allowed].min()
        tied = allowed & (aim <= lowest + 1e-12 * abs(lowest))
        return self._at(int(np.where(tied, limited, np.inf).argmin()))

    def frontier(self) -> "Frontier":
        """The combinations that no other beats in both loss and cost, by cost."""
        loss, cost = self.loss.ravel(), self.cost.ravel()
        order = np.lexsort((loss, cost))
        before = np.minimum.accumulate(np.concatenate([[np.inf], loss[order][:-1]]))
        places = order[loss[order] < before]
        chosen = tuple(self._at(int(place)) for place in places)
        return Frontier(chosen, cost[places], loss[places])

    def _at(self, place: int) -> Thresholds:
        index = np.unravel_index(place, self.loss.shape)
        return tuple(
            float(grid[i]) for grid, i in zip(self.thresholds, index, strict=True)
        )


@final
@dataclass(frozen=True, eq=False)
class Frontier:
    """The best that a cascade can do for each cost.

    Attributes
    ----------
    thresholds : tuple of tuples of float
        Of each point.
    cost, risk : array, shape (points,)
        Mean cost, growing, and mean loss, falling.
    """

    thresholds: tuple[Thresholds, ...]
    cost: Array
    risk: Array

    def __len__(self) -> int:
        return len(self.cost)


def surface(trial: Trial) -> Surface:
    """Loss and cost of every combination of thresholds (ledger E125).

    Parameters
    ----------
    trial : Trial
        Of all stages on all rows.

    Returns
    -------
    Surface
        Exact at its thresholds, which are quantiles of the doubts: all of them with
        two stages and up to a million rows, about 1000 of each with three.
    """
    n_limits = len(trial.doubt)
    size = int(_CELLS ** (1 / max(n_limits, 1)))
    grids = [_grid(doubt, size) for doubt in trial.doubt]
    bins = [np.searchsorted(g, d) for g, d in zip(grids, trial.doubt, strict=True)]
    shape = tuple(map(len, grids))
    loss, cost = np.zeros(shape), np.zeros(shape)
    for k in range(n_limits + 1):
        reached = _reaching(bins[:k], np.ones(trial.n_rows), shape)
        loss += _answered(bins, trial.loss[k], shape, k) / trial.n_rows
        # E125: cost(t) = Σ_k c_k Pr(s_1 > t_1, …, s_{k-1} > t_{k-1})
        cost += trial.cost[k] * reached / trial.n_rows
    return Surface(grids, loss, cost)


def _grid(doubt: Array, size: int) -> Array:
    """Thresholds: -inf, quantiles that are doubts of rows, inf."""
    values = np.unique(doubt[np.isfinite(doubt)])
    most = max(size - 2, 1)
    if len(values) > most:
        places = np.linspace(0, 1, most)
        values = np.unique(np.quantile(doubt, places, method="inverted_cdf"))
    return np.concatenate([[-np.inf], values[np.isfinite(values)], [np.inf]])


def _answered(
    bins: list[NDArray[np.int64]], weight: Array, shape: tuple[int, ...], k: int
) -> Array:
    """Sums of ``weight`` over the rows that stage ``k`` answers."""
    passed = _reaching(bins[:k], weight, shape)
    if k == len(bins):
        return passed
    # E125: loss(t) = Σ_k E[l_k; s_1 > t_1, …, s_{k-1} > t_{k-1}, s_k ≤ t_k]
    return passed - _reaching(bins[: k + 1], weight, shape)


def _reaching(
    bins: list[NDArray[np.int64]], weight: Array, shape: tuple[int, ...]
) -> Array:
    """Sums of ``weight`` over the rows that pass the first ``len(bins)`` stages.

    A row passes threshold j of a stage if its bin, the first threshold that holds it,
    lies above j.
    """
    k = len(bins)
    if k == 0:
        return np.full(shape, weight.sum())
    flat = np.ravel_multi_index(bins, shape[:k])
    sums = np.bincount(flat, weight, int(np.prod(shape[:k]))).reshape(shape[:k])
    for axis in range(k):
        above = np.flip(np.cumsum(np.flip(sums, axis), axis), axis)
        sums = above - sums
    return np.broadcast_to(sums.reshape(sums.shape + (1,) * (len(shape) - k)), shape)
