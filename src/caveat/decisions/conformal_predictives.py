"""Predictives whose intervals, or sets, keep their word: conformal ones on top.

Conformal prediction says which values are still possible, and nothing else. So these
wrap another predictive and replace its quantiles, intervals and cdf, or add sets of
classes; mean, variance, density, samples, CRPS and draws stay those of the wrapped one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self, final

import numpy as np
import torch
from torch import Tensor

from caveat import _validation as validation
from caveat.decisions.conformal_intervals import IntervalScore
from caveat.decisions.guarantees import CalibrationScores
from caveat.errors import NoAnswerError
from caveat.evaluation.estimates import Array
from caveat.predictive import ClassificationPredictive, RegressionPredictive
from caveat.predictive.base import count_of


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConformalIntervalPredictive(RegressionPredictive):
    """A regression with conformal quantiles, intervals and cdf.

    Make one by :meth:`ConformalIntervals.apply`. ``interval(level)`` is the conformal
    interval of that level, at any level for which there are enough calibration rows
    (n rows serve levels up to n/(n + 1); beyond is an error), and ``quantile(q)`` is
    the end of the interval that leaves out q on its side; the interval is symmetric in
    probability by convention, as the calibration says nothing about single tails. The
    median is the middle of the narrowest interval. ``cdf`` counts calibration rows
    (ledger E162): a step function that reaches neither 0 nor 1, as nothing is known
    beyond the worst of them.

    Density, samples and CRPS are those of the wrapped predictive, and do not agree with
    the conformal quantiles.

    Attributes
    ----------
    wrapped : RegressionPredictive
        What is wrapped, one output per row.
    score : IntervalScore
        How badly a row can do.
    calibration : CalibrationScores
        How badly the calibration rows did.
    """

    wrapped: RegressionPredictive
    score: IntervalScore
    calibration: CalibrationScores

    @property
    def mean(self) -> Tensor:
        return self.wrapped.mean

    @property
    def epistemic_variance(self) -> Tensor:
        return self.wrapped.epistemic_variance

    @property
    def noise_variance(self) -> Tensor:
        return self.wrapped.noise_variance

    @property
    def mean_error(self) -> Tensor:
        return self.wrapped.mean_error

    @property
    def draws(self) -> Tensor:
        return self.wrapped.draws

    def inside(self, y: Tensor, level: float | Sequence[float]) -> Tensor:
        y = self._target(y).double()
        found = []
        for one in validation.quantile_levels(level):
            lower, upper = self._ends(one)
            found.append((lower <= y) & (y <= upper))
        return found[0] if torch.as_tensor(level).ndim == 0 else torch.stack(found)

    def with_precision(self, precision: Any) -> NoReturn:
        """Not known: the calibration is that of the predictive as it was.

        Parameters
        ----------
        precision : float or Tensor
            Whatever it is, the answer is a :class:`~caveat.errors.NoAnswerError`.
        """
        raise NoAnswerError(
            "The calibration rows were scored under the noise the predictive had. "
            "Exchange it first, predictive.with_precision(tau), for calibration rows "
            "and new ones alike, and then call conformal()."
        )

    def _rescaled(self, a: Tensor, b: Tensor) -> Self:
        factor = abs(float(a.reshape(-1)[0]))
        scores = self.score.in_units(np.array(self.calibration.values), factor)
        return replace(
            self,
            wrapped=self.wrapped.rescale(a, b),
            calibration=CalibrationScores.of(scores),
        )

    def _log_prob(self, y: Tensor) -> Tensor:
        return self.wrapped.log_prob(y)

    def _crps(self, y: Tensor) -> Tensor:
        return self.wrapped.crps(y)

    def _sample(self, number: int, seed: int) -> Tensor:
        return self.wrapped.sample(number, seed=seed)

    def _cdf(self, y: Tensor) -> Tensor:
        scores = self.score.calibration_scores(self.wrapped, _column(y))
        # E162: F(y) = (1 + #{s_i <= s(y)}/(n+1)) / 2 above the median,
        #       (1 - #{s_i < s(y)}/(n+1)) / 2 below it
        known = self.calibration
        share = np.stack([known.n_up_to(scores), -known.n_below(scores)])
        above, below = map(self._tensor, 0.5 + 0.5 * share / (len(known) + 1))
        return torch.where(y.double() >= self._median(), above, below)

    def _quantiles(self, levels: Sequence[float]) -> Tensor:
        return torch.stack([self._quantile(q) for q in levels])

    def _quantile(self, q: float) -> Tensor:
        if q == 0.5:
            return self._median()
        lower, upper = self._ends(abs(2.0 * q - 1.0))
        return lower if q < 0.5 else upper

    def _median(self) -> Tensor:
        lower, upper = self.score.interval(self.wrapped, self.calibration.values[0])
        return self._tensor(0.5 * (lower + upper))

    def _ends(self, level: float) -> tuple[Tensor, Tensor]:
        limit = self.calibration.guarantee(level).limit
        lower, upper = self.score.interval(self.wrapped, limit)
        return self._tensor(lower), self._tensor(upper)

    def _tensor(self, values: Array) -> Tensor:
        """Float64, in the shape of the mean."""
        found = torch.from_numpy(np.asarray(values, dtype=np.float64))
        return found.reshape(self.mean.shape).to(self.mean.device)

    def _headline(self) -> str:
        known = count_of(len(self.calibration), "calibration row")
        kind = type(self.wrapped).__name__
        return f"{kind} of {count_of(len(self), 'row')}, intervals from {known}"

    def _highlights(self) -> dict[str, Tensor]:
        return self.wrapped._highlights()


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConformalSetPredictive(ClassificationPredictive):
    """A classification with conformal sets of classes on top.

    Make one by :meth:`ConformalSets.apply`. All other answers are those of the wrapped
    predictive: the probabilities are not changed.

    Attributes
    ----------
    wrapped : ClassificationPredictive
        What is wrapped, one label per row.
    sets : Tensor of bool, shape (batch, classes)
        The plausible classes of each row; none, if no class is plausible.
    level : float
        Probability that the class of a new row is in its set.
    """

    wrapped: ClassificationPredictive
    sets: Tensor
    level: float

    @property
    def probs(self) -> Tensor:
        return self.wrapped.probs

    @property
    def log_probs(self) -> Tensor:
        return self.wrapped.log_probs

    @property
    def mean_error(self) -> Tensor:
        return self.wrapped.mean_error

    @property
    def entropy(self) -> Tensor:
        return self.wrapped.entropy

    @property
    def expected_entropy(self) -> Tensor:
        return self.wrapped.expected_entropy

    @property
    def mutual_information(self) -> Tensor:
        return self.wrapped.mutual_information

    @property
    def variation_ratio(self) -> Tensor:
        return self.wrapped.variation_ratio

    @property
    def draws(self) -> Tensor:
        return self.wrapped.draws

    def _columns(self) -> dict[str, Tensor]:
        return self.wrapped._columns() | {"sets": self.sets}

    def _headline(self) -> str:
        kind, rows = type(self.wrapped).__name__, count_of(len(self), "row")
        return f"{kind} of {rows}, sets of level {self.level:g}"

    def _highlights(self) -> dict[str, Tensor]:
        return self.wrapped._highlights() | {"classes in a set": self.sets.sum(-1)}


def _column(y: Tensor) -> Array:
    return y.double().reshape(-1).numpy(force=True)
