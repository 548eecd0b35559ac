"""Networks with a noise head, one per fold: what ``preset="best"`` mixes into a pool.

They are the flagship of Table 1: deep ensembles of dropout networks that tell mean and
noise of every row. Their rate and length, the scale of their precisions and their share
are chosen by rows that they have not learned from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import logsumexp

from caveat.estimators.tables.budget import Budget
from caveat.estimators.tables.nets import Lesson, Nets, train_nets
from caveat.estimators.tables.views import RowsOfViews, Views
from caveat.evaluation.precision import search_scale
from caveat.training.folds import Fold
from caveat.training.objectives import GaussianWithPrecision, split_head
from caveat.training.streams import mask_seed

Array = NDArray[np.float64]

NAME = "networks with a noise head"
_HELD_DRAWS = 24
_SCALES = (0.05, 5.0)  # of the learned precisions
_SURER = np.log(4.0)  # than the surest row held out: the most that a new row may be
_BEYOND = 0.5  # of the range of y: how far from it a mean may be
_SHARES = np.linspace(0.0, 1.0, 21)
_COST = 4.0  # nats that a share must gain


@dataclass(frozen=True, eq=False)
class Heads:
    """Networks that tell a mean and a precision, in standard units of y.

    Attributes
    ----------
    nets : Nets
        Means, then log precisions.
    log_scale : float
        Of a factor on all precisions.
    bounds : array, shape (4, outputs)
        Least and largest mean, least and largest log precision.
    """

    nets: Nets
    log_scale: float
    bounds: Array

    def draws(
        self,
        views: Views | RowsOfViews,
        *,
        n_draws: int,
        seed: int,
        only: int | None = None,
    ) -> tuple[Array, Array]:
        """Means and log precisions (draws, rows, outputs); networks take turns."""
        count = 1 if only is not None else len(self.nets.parameters)
        each = -(-n_draws // count)
        found = self.nets.draws(
            views[self.nets.view], n_draws=each, seed=seed, only=only
        )
        flat = torch.from_numpy(found.reshape(-1, *found.shape[2:])[:n_draws])
        means, logs = (part.numpy() for part in split_head(flat))
        least, most, unsure, sure = self.bounds
        return (
            np.clip(means, least, most),
            np.clip(logs, unsure, sure) + self.log_scale,
        )


class FittedHeads(NamedTuple):
    """What was found: the networks, and the log density of each row held out."""

    heads: Heads
    logs: Array


def fit_heads(
    budget: Budget,
    views: Views,
    y: Array,
    *,
    folds: Sequence[Fold],
    weight: Array,
    seed: int,
    progress: bool | None,
) -> FittedHeads | None:
    """Train all recipes on all folds, and take the one under which rows do best.

    Parameters
    ----------
    budget : Budget
        Whose ``heads`` are trained.
    views : Views
        Of the columns of all rows.
    y : array, shape (rows, outputs)
        In standard units.
    folds : sequence of Fold
        Each has a network.
    weight : array, shape (rows,)
        Of the rows.
    seed : int
        Of all.
    progress : bool or None
        Whether to show a bar.

    Returns
    -------
    FittedHeads or None
        None if all diverged.
    """
    lessons = [Lesson(fold, y[fold.train], weight[fold.train]) for fold in folds]
    trained: Mapping[str, tuple[Nets, list[int]]] = train_nets(
        budget.heads,
        {recipe.view: views[recipe.view] for recipe in budget.heads},
        {recipe.name: lessons for recipe in budget.heads},
        GaussianWithPrecision(),
        batch_size=budget.batch_size(len(y)),
        learning_rate=budget.learning_rate,
        seed=mask_seed(seed, 7),
        progress=progress,
    )
    found = [
        _validated(nets, views, y, folds, weight, seed)
        for nets, bad in trained.values()
        if not bad
    ]
    return max(found, key=lambda f: float(weight @ f.logs), default=None)


def _validated(
    nets: Nets,
    views: Views,
    y: Array,
    folds: Sequence[Fold],
    weight: Array,
    seed: int,
) -> FittedHeads:
    """Held-out draws, their bounds, and the scale of precisions that fits them."""
    margin = _BEYOND * (y.max(0) - y.min(0))
    wide = np.full(y.shape[1], np.inf)
    bounds = np.stack([y.min(0) - margin, y.max(0) + margin, -wide, wide])
    heads = Heads(nets, 0.0, bounds)
    means = np.empty((_HELD_DRAWS, *y.shape))
    logs = np.empty_like(means)
    for number, fold in enumerate(folds):
        means[:, fold.valid], logs[:, fold.valid] = heads.draws(
            RowsOfViews(views, fold.valid),
            n_draws=_HELD_DRAWS,
            seed=mask_seed(seed, number),
            only=number,
        )
    bounds[2], bounds[3] = np.quantile(logs, [0.005, 0.995], axis=(0, 1))
    bounds[2] -= _SURER
    bounds[3] += _SURER
    logs = np.clip(logs, bounds[2], bounds[3])
    total = weight.sum()

    def densities(scale: float) -> Array:
        own = logs + np.log(scale)
        each = 0.5 * (own - np.exp(own) * np.square(y - means) - np.log(2 * np.pi))
        return np.asarray(logsumexp(each.sum(-1), axis=0) - np.log(_HELD_DRAWS))

    low, high = _SCALES
    best = search_scale(
        lambda k: float(weight @ densities(k) / total),
        low=low,
        high=high,
        tolerance=0.01,
    )
    scale = best.scale if np.isfinite(best.scale) else low
    return FittedHeads(
        replace(heads, log_scale=float(np.log(scale)), bounds=bounds),
        densities(scale),
    )


def best_share(pool: Array, heads: Array, weight: Array) -> float:
    """The share of heads in a mixture under which held-out rows are most probable.

    Parameters
    ----------
    pool, heads : array, shape (rows,)
        Log densities of held-out rows.
    weight : array, shape (rows,)
        Of the rows; mean 1.

    Returns
    -------
    float
        0 if the gain is too small to be trusted.
    """
    with np.errstate(divide="ignore"):
        own, others = np.log(_SHARES), np.log1p(-_SHARES)
    mixed = np.logaddexp(others + pool[:, None], own + heads[:, None])
    values = weight @ mixed
    best = int(values.argmax())
    return float(_SHARES[best]) if values[best] - values[0] > _COST else 0.0
