"""From checked rows to trained networks: one way for all dropout estimators."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from caveat.errors import ParameterError
from caveat.estimators.prior import Prior
from caveat.evaluation.precision import BestScale
from caveat.training.ensembles import (
    TRIAL_PRECISION,
    Ensemble,
    Problem,
    fit_ensembles,
    scaling_of,
)
from caveat.training.folds import Fold, contiguous_folds, folds_by_size
from caveat.training.likelihood import Residuals, residuals
from caveat.training.objectives import Weighted
from caveat.training.search import Task, score_of
from caveat.training.spec import NetworkSpec

Array = NDArray[np.float64]

_FEWEST = 5  # rows from which on there are as many folds as a search takes
_DIVERGED = """the weights of {names} are not finite: training diverged. Lower
learning_rate, which is {rate}, or look for outliers in X and y."""


@dataclass(frozen=True)
class Trainer:
    """Trains the networks of an estimator.

    Attributes
    ----------
    name : str
        Of the estimator; networks are reported by it.
    spec : NetworkSpec
        Its length-scale does not count; that of the prior does.
    prior : Prior
    seed : int
    progress : bool or None
    weight : array, shape (rows,), or None
        Of the rows, with a mean of 1; None for equal ones.
    """

    name: str
    spec: NetworkSpec
    prior: Prior
    seed: int = 0
    progress: bool | None = False
    weight: Array | None = None

    def fit(self, x: Array, y: Array, *, precision: float) -> Ensemble:
        """The ensemble of all rows.

        Parameters
        ----------
        x : array, shape (rows, inputs)
            In the units of the data, as all arrays here.
        y : array, shape (rows, targets)
            Or class numbers, shape (rows, 1).
        precision : float
            tau in standard units, for the weight decay.

        Returns
        -------
        Ensemble
        """
        own = self.problem(x, y, precision=precision, weight=self.weight)
        return self._train([own])[0]

    def validate(self, x: Array, y: Array) -> BestScale:
        """The precision that fits rows best which the networks have not learned from.

        Parameters
        ----------
        x, y
            As for :meth:`fit`; they are shuffled and cut into folds.

        Returns
        -------
        BestScale
            tau in standard units, or the factor on learned precisions; and the mean
            log density in standard units.
        """
        order = np.random.default_rng([self.seed, 0]).permutation(len(x))
        x, y = x[order], y[order]
        weight = None if self.weight is None else self.weight[order]
        folds = _folds(len(x))
        ensembles = self._train(
            [
                self.problem(
                    x[fold.train],
                    y[fold.train],
                    precision=TRIAL_PRECISION,
                    part=number + 1,
                    weight=None if weight is None else weight[fold.train],
                )
                for number, fold in enumerate(folds)
            ]
        )
        scaling = scaling_of(self.spec, x, y)
        found = [
            self._residuals(ensemble, x[fold.valid], y[fold.valid], scaling.y_std)
            for ensemble, fold in zip(ensembles, folds, strict=True)
        ]
        if weight is not None:
            found = [
                replace(own, weights=torch.from_numpy(weight[fold.valid]))
                for own, fold in zip(found, folds, strict=True)
            ]
        task = Task(self.name, x, (y - scaling.y_mean) / scaling.y_std)
        return score_of(task, self.spec, found)

    def problem(
        self,
        x: Array,
        y: Array,
        *,
        precision: float,
        part: int = 0,
        weight: Array | None = None,
    ) -> Problem:
        """What is trained on these rows: all of them, or ``part`` 1, 2, … of them."""
        spec = replace(self.spec, lengthscale=self.lengthscale(precision, len(x)))
        if weight is not None:
            spec = replace(spec, objective=Weighted(spec.objective))
            y = np.column_stack([y, weight])
        return Problem(
            f"{self.name}, fold {part - 1}" if part else self.name,
            x,
            y,
            spec,
            seed=part,
            standard_precision=precision,
        )

    def lengthscale(self, precision: float, n_rows: int) -> float:
        """l of the prior, given tau in standard units and all rows."""
        return self.prior.lengthscale_for(
            precision, keep_prob=self._keep_prob, n_train=self._n_train(n_rows)
        )

    def precision(self, n_rows: int) -> float:
        """tau in standard units, if the prior says what it is."""
        return self.prior.precision_for(
            keep_prob=self._keep_prob, n_train=self._n_train(n_rows)
        )

    @property
    def _keep_prob(self) -> float:
        return 1.0 - self.spec.drop_rates[-1]

    def _n_train(self, n_rows: int) -> int:
        return self.spec.schedule.n_train(n_rows)

    def _train(self, problems: Sequence[Problem]) -> list[Ensemble]:
        ensembles = fit_ensembles(problems, seed=self.seed, progress=self.progress)
        if self.weight is not None:
            ensembles = [
                replace(e, scaling=e.scaling.without_weights()) for e in ensembles
            ]
        names = [repr(n) for e in ensembles for n in e.trained.diverged]
        if names:
            rate = self.spec.schedule.learning_rate
            raise ParameterError(_DIVERGED.format(names=", ".join(names), rate=rate))
        return ensembles

    def _residuals(
        self, ensemble: Ensemble, x: Array, y: Array, y_std: Array
    ) -> Residuals:
        """Errors in standard units, so that one precision serves all targets."""
        draws = ensemble.draws(x, n_draws=self.spec.n_draws)
        std = torch.from_numpy(y_std)
        precisions = draws.precisions
        return residuals(
            draws.means / std,
            None if precisions is None else precisions * std.square(),
            torch.from_numpy(y) / std,
        )


def _folds(n_rows: int) -> list[Fold]:
    """As a search takes them; of very few rows each is a fold of its own."""
    if n_rows < _FEWEST:
        return contiguous_folds(n_rows, n_rows)
    return folds_by_size(n_rows)
