"""From checked rows to trained networks: one way for all dropout estimators."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from caveat import _validation as validation
from caveat.errors import ParameterError
from caveat.estimators.prior import Prior
from caveat.training.ensembles import (
    TRIAL_PRECISION,
    Candidate,
    Ensemble,
    Problem,
    Settings,
    fit_ensembles,
)
from caveat.training.folds import Fold, contiguous_folds, folds_by_size
from caveat.training.likelihood import BestScale, Residuals, residuals
from caveat.training.search import Task, score_of

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
    settings : Settings
    candidate : Candidate
        Its length-scale does not count; that of the prior does.
    prior : Prior
    held_out : float or None
        Share of the rows by which training is stopped early.
    patience : int
        Epochs without a new best on them.
    n_threads : int or None
    progress : bool or None
    """

    name: str
    settings: Settings
    candidate: Candidate
    prior: Prior
    held_out: float | None = None
    patience: int = 20
    n_threads: int | None = None
    progress: bool | None = False

    def __post_init__(self) -> None:
        if self.held_out is not None:
            validation.unit_interval("validation_fraction", self.held_out)

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
        return self._train([self.problem(x, y, precision=precision)])[0]

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
        order = self._generator(0).permutation(len(x))
        x, y = x[order], y[order]
        folds = _folds(len(x))
        ensembles = self._train(
            [
                self.problem(
                    x[fold.train],
                    y[fold.train],
                    precision=TRIAL_PRECISION,
                    part=number + 1,
                )
                for number, fold in enumerate(folds)
            ]
        )
        scaling = self.settings.scaling(x, y)
        found = [
            self._residuals(ensemble, x[fold.valid], y[fold.valid], scaling.y_sd)
            for ensemble, fold in zip(ensembles, folds, strict=True)
        ]
        task = Task(self.name, x, (y - scaling.y_mean) / scaling.y_sd)
        return score_of(task, self.candidate, self.settings, found)

    def problem(
        self, x: Array, y: Array, *, precision: float, part: int = 0
    ) -> Problem:
        """What is trained on these rows: all of them, or ``part`` 1, 2, … of them."""
        held_out = None
        if self.held_out is not None:
            order = self._generator(1, part).permutation(len(x))
            stop, learn = np.split(order, [len(x) - self.n_train(len(x))])
            held_out, x, y = (x[stop], y[stop]), x[learn], y[learn]
        length = self.prior.lengthscale_for(precision, len(x))
        return Problem(
            f"{self.name}, fold {part - 1}" if part else self.name,
            x,
            y,
            replace(self.candidate, lengthscale=length),
            seed=part,
            standard_precision=precision,
            held_out=held_out,
        )

    def n_train(self, n_rows: int) -> int:
        """How many of so many rows are learned from; the others stop the training."""
        if self.held_out is None:
            return n_rows
        held = max(1, round(self.held_out * n_rows))
        if held >= n_rows:
            raise ParameterError(
                f"early_stopping holds out {held} of {n_rows} rows and leaves none to "
                f"learn from. Lower validation_fraction, or give more rows."
            )
        return n_rows - held

    def _train(self, problems: Sequence[Problem]) -> list[Ensemble]:
        ensembles = fit_ensembles(
            problems,
            self.settings,
            patience=self.patience,
            n_threads=self.n_threads,
            progress=self.progress,
        )
        names = [repr(n) for e in ensembles for n in e.trained.diverged]
        if names:
            rate = self.settings.learning_rate
            raise ParameterError(_DIVERGED.format(names=", ".join(names), rate=rate))
        return ensembles

    def _residuals(
        self, ensemble: Ensemble, x: Array, y: Array, y_sd: Array
    ) -> Residuals:
        """Errors in standard units, so that one precision serves all targets."""
        draws = ensemble.draws(x, n_draws=self.settings.n_draws)
        sd = torch.from_numpy(y_sd)
        precisions = draws.precisions
        return residuals(
            draws.means / sd,
            None if precisions is None else precisions * sd.square(),
            torch.from_numpy(y) / sd,
        )

    def _generator(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.settings.seed, *purpose])


def _folds(n_rows: int) -> list[Fold]:
    """As a search takes them; of very few rows each is a fold of its own."""
    if n_rows < _FEWEST:
        return contiguous_folds(n_rows, n_rows)
    return folds_by_size(n_rows)
