"""A classifier that chooses for itself: candidates, cross-fitted, pooled, calibrated.

Logits are a sum of those of the class frequencies, of logistic regressions and of
networks, with the weights that make labels most probable which none of them has
learned from. The sum of the weights says how sure the pool is, so it is calibrated.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp

from caveat._threads import blas_for
from caveat.errors import CaveatWarning
from caveat.estimators.tables.budget import Budget
from caveat.estimators.tables.columns import Columns
from caveat.estimators.tables.logistic import (
    INVERSE_PENALTIES,
    Labels,
    Logistic,
    class_logits,
)
from caveat.estimators.tables.nets import Lesson, Nets, train_nets
from caveat.estimators.tables.records import DIVERGED, WORSE, Candidate, is_above_zero
from caveat.estimators.tables.views import RowsOfViews, Views
from caveat.estimators.tables.weights import logit_weights, tie_price
from caveat.evaluation.precision import search_scale
from caveat.training.objectives import SoftmaxCrossEntropy
from caveat.training.streams import mask_seed

Array = NDArray[np.float64]

PRIOR = "class frequencies"
SPARSE = "sparse logistic"
VIEW_OF = {"logistic": "plain", SPARSE: "plain", "additive logistic": "pieces"}
_COSTS = {PRIOR: 0.0, "logistic": 0.5, SPARSE: 2.0, "additive logistic": 2.0}
_NET_COST = 3.0
_HELD_DRAWS = 24
SURE = 12.0  # logits are clipped at this distance from their mean
_TEMPERATURES = (0.4, 2.5)
_BELIEFS = (0.1, 0.3, 1.0)  # factors on the logits of networks


@dataclass(frozen=True, eq=False)
class TableClassification:
    """A fitted pool.

    Attributes
    ----------
    columns : Columns
    prior : array, shape (classes,)
        Log frequencies of the classes.
    names : tuple of str
        Of the parts with a weight.
    parts : tuple of Logistic or Nets
        None stands for the class frequencies.
    weights : array, shape (parts,)
    """

    columns: Columns
    prior: Array
    names: tuple[str, ...]
    parts: tuple[Logistic | Nets | None, ...]
    weights: Array

    @property
    def turns(self) -> int:
        """Networks that take turns at the draws; 1 without any."""
        return max(
            (len(p.parameters) for p in self.parts if isinstance(p, Nets)), default=1
        )

    def draws(self, x: Array, *, n_draws: int, seed: int, shift: int = 0) -> Array:
        """Logits, shape (draws, rows, classes).

        ``shift`` is added to the seed of every stream, as by the seed of a graph.
        """
        views = Views(self.columns, x)
        found = np.zeros((n_draws, len(x), len(self.prior)))
        for place, (name, part) in enumerate(zip(self.names, self.parts, strict=True)):
            own = mask_seed(seed, place)
            if isinstance(part, Nets):
                drawn = net_logits(part, views, n_draws=n_draws, seed=own, shift=shift)
            else:
                drawn = self._line(name, part, views)[None]
            found += self.weights[place] * drawn
        return found

    def _line(self, name: str, part: Logistic | None, views: Views) -> Array:
        if part is None:
            return np.broadcast_to(self.prior, (len(views), len(self.prior)))
        return tame(part.logits(views[VIEW_OF[name]]))


def tame(logits: Array) -> Array:
    """Logits around 0, none so far from it that one row could ruin a mean."""
    return np.clip(logits - logits.mean(-1, keepdims=True), -SURE, SURE)


def net_logits(
    nets: Nets,
    views: Views | RowsOfViews,
    *,
    n_draws: int,
    seed: int,
    only: int | None = None,
    shift: int = 0,
) -> Array:
    """Draws (draws, rows, classes): the mean of all, and one network's deviation."""
    count = 1 if only is not None else len(nets.parameters)
    each = -(-n_draws // count)
    x = views[nets.view]
    found = tame(nets.draws(x, n_draws=each, seed=seed, only=only, shift=shift))
    own = found.mean(0)
    gaps = (found - own).reshape(-1, *found.shape[2:])[:n_draws]
    return np.asarray(gaps + own.mean(0))


class FittedClassification(NamedTuple):
    """A pool, and what was seen of it.

    Attributes
    ----------
    table : TableClassification
    candidates : list of Candidate
        All that were tried.
    log_likelihood : float
        Mean log probability of held-out labels under the pool. Its weights were chosen
        by the same rows.
    """

    table: TableClassification
    candidates: list[Candidate]
    log_likelihood: float


def fit_classification(
    x: Array,
    labels: Labels,
    *,
    n_classes: int,
    budget: Budget,
    weight: Array,
    seed: int,
    progress: bool | None,
) -> FittedClassification:
    """Fit all candidates, pool them, and calibrate the pool.

    Parameters
    ----------
    x : array, shape (rows, columns)
        Finite numbers.
    labels : array of int, shape (rows,)
        Class numbers.
    n_classes : int
        At least 2.
    budget : Budget
        What may be tried.
    weight : array, shape (rows,)
        Of the rows; mean 1.
    seed : int
        Of everything random.
    progress : bool or None
        Whether to show a bar.

    Returns
    -------
    FittedClassification
    """
    with blas_for(x.size):
        return _Fit(x, labels, n_classes, budget, weight, seed, progress).run()


class _Fit:
    """One fit: rows in an order that spreads the classes over folds."""

    def __init__(
        self,
        x: Array,
        labels: Labels,
        n_classes: int,
        budget: Budget,
        weight: Array,
        seed: int,
        progress: bool | None,
    ) -> None:
        self.folds = budget.folds(len(x))
        order = _spread_out(labels, len(self.folds), seed)
        self.weight, self.labels = weight[order], labels[order]
        self.columns = Columns.of(x)
        self.views = Views(self.columns, x[order])
        self.n_classes, self.budget = n_classes, budget
        self.seed, self.progress = seed, progress
        self.held: dict[str, Array] = {}  # (draws or 1, rows, classes)
        self.nets: dict[str, Nets] = {}
        self.penalty: dict[str, float] = {}

    def run(self) -> FittedClassification:
        self.held[PRIOR] = self._held_out_prior()
        for name, view in VIEW_OF.items():
            if view == "plain" or self.columns.has_pieces:
                self.held[name] = self._best_logistic(name)
        if self.budget.recipes:
            self._networks()
        names = list(self.held)
        means = np.stack([self.held[name].mean(0) for name in names])
        costs = [
            _COSTS.get(name, _NET_COST * max(1.0, float(own.std())))
            for name, own in zip(names, means, strict=True)
        ]
        weights = logit_weights(means, self.labels, costs, self.weight)
        weights = weights * self._sureness(names, weights)
        kept = [i for i, w in enumerate(weights) if w > 0]
        table = TableClassification(
            self.columns,
            class_logits(self.labels, self.n_classes, self.weight),
            tuple(names[i] for i in kept),
            tuple(self._final(names[i]) for i in kept),
            weights[kept],
        )
        value = self._value(self._pooled(names, weights))
        return FittedClassification(table, self._candidates(names, weights), value)

    def _pooled(self, names: Sequence[str], weights: Array) -> Array:
        """Held-out logits of the pool, (draws or 1, rows, classes)."""
        pairs = zip(weights, names, strict=True)
        shape = (1, len(self.labels), self.n_classes)
        return np.asarray(
            sum((w * self.held[n] for w, n in pairs if w), np.zeros(shape))
        )

    def _held_out_prior(self) -> Array:
        found = np.empty((1, len(self.labels), self.n_classes))
        for fold in self.folds:
            rows = fold.train
            found[:, fold.valid] = class_logits(
                self.labels[rows], self.n_classes, self.weight[rows]
            )
        return found

    def _logistic(
        self, name: str, rows: slice | NDArray[np.int64], penalty: float
    ) -> Logistic:
        return Logistic.fit(
            self.views[VIEW_OF[name]][rows],
            self.labels[rows],
            n_classes=self.n_classes,
            weight=self.weight[rows],
            inverse_penalty=penalty,
            sparse=name == SPARSE,
        )

    def _best_logistic(self, name: str) -> Array:
        """Held-out logits at the best penalty; from strong to weak, while it helps."""
        best, best_value = np.empty((0, 0, 0)), -np.inf
        for penalty in INVERSE_PENALTIES:
            held = np.empty((1, len(self.labels), self.n_classes))
            for fold in self.folds:
                model = self._logistic(name, fold.train, penalty)
                rows = self.views[VIEW_OF[name]][fold.valid]
                held[:, fold.valid] = tame(model.logits(rows))
            value = self._value(held)
            if value <= best_value:
                break
            best, best_value, self.penalty[name] = held, value, penalty
        return best

    def _networks(self) -> None:
        recipes = self.budget.recipes
        targets = self.labels.reshape(-1, 1).astype(np.float64)
        lessons = [
            Lesson(fold, targets[fold.train], self.weight[fold.train])
            for fold in self.folds
        ]
        trained = train_nets(
            recipes,
            {r.view: self.views[r.view] for r in recipes},
            {r.name: lessons for r in recipes},
            SoftmaxCrossEntropy(self.n_classes),
            batch_size=self.budget.batch_size(len(self.labels)),
            learning_rate=self.budget.learning_rate,
            seed=self.seed,
            progress=self.progress,
        )
        worse: list[str] = []
        for name, (nets, bad) in trained.items():
            if bad:
                warnings.warn(DIVERGED.format(name=name), CaveatWarning, stacklevel=6)
                continue
            held = self._held_out_nets(nets)
            if self._adds_nothing(held):
                worse.append(name)
                continue
            self.held[name], self.nets[name] = held, nets
        if worse:
            names = ", ".join(map(repr, worse))
            warnings.warn(WORSE.format(names=names), CaveatWarning, stacklevel=6)

    def _adds_nothing(self, held: Array) -> bool:
        """Whether frequencies are better, however little the logits are believed."""
        prior = self.held[PRIOR]
        logs = self._logs(prior)
        return all(
            is_above_zero(logs - self._logs(prior + k * (held - prior)), self.weight)
            for k in _BELIEFS
        )

    def _held_out_nets(self, nets: Nets) -> Array:
        held = np.empty((_HELD_DRAWS, len(self.labels), self.n_classes))
        for number, fold in enumerate(self.folds):
            views = RowsOfViews(self.views, fold.valid)
            held[:, fold.valid] = net_logits(
                nets,
                views,
                n_draws=_HELD_DRAWS,
                seed=mask_seed(self.seed, number),
                only=number,
            )
        return held

    def _value(self, draws: Array) -> float:
        """Mean log probability of the labels under the mixture of draws."""
        return float(self.weight @ self._logs(draws) / self.weight.sum())

    def _logs(self, draws: Array) -> Array:
        """Log probability of each label under the mixture of draws."""
        log = log_softmax(draws, -1)[:, np.arange(len(self.labels)), self.labels]
        return np.asarray(logsumexp(log, axis=0) - np.log(len(log)))

    def _sureness(self, names: Sequence[str], weights: Array) -> float:
        """A factor on all weights, as draws are mixed after the softmax."""
        draws, total = self._pooled(names, weights), float(weights.sum())

        def gain(factor: float) -> float:
            return self._value(factor * draws) * self.weight.sum() - tie_price(
                factor * total
            )

        low, high = _TEMPERATURES
        found = search_scale(gain, low=low, high=high, tolerance=0.01)
        return found.scale if found.log_likelihood - gain(1.0) > 0.5 else 1.0

    def _final(self, name: str) -> Logistic | Nets | None:
        """Logistic regressions of all rows; networks as they were validated."""
        if name == PRIOR:
            return None
        if name in self.nets:
            return self.nets[name]
        return self._logistic(name, slice(None), self.penalty[name])

    def _candidates(self, names: Sequence[str], weights: Array) -> list[Candidate]:
        curves = {name: nets.curve for name, nets in self.nets.items()}
        return [
            Candidate(
                name, self._value(self.held[name]), float(weight), curves.get(name, ())
            )
            for name, weight in zip(names, weights, strict=True)
        ]


def _spread_out(labels: Labels, n_folds: int, seed: int) -> NDArray[np.int64]:
    """An order in which folds of neighbours hold about as many rows of each class."""
    order = np.random.default_rng([seed, 0]).permutation(len(labels))
    by_class = order[np.argsort(labels[order], kind="stable")]
    return np.concatenate([by_class[k::n_folds] for k in range(n_folds)])
