"""What a report is about: predictions, what was observed, and numbers of both.

Everything is read from the public surface of the predictive, and every number that
``caveat.evaluation`` knows is taken from there.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, TypeAlias, TypeVar, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat import _validation
from caveat.errors import DrawsNotKeptError, ParameterError, ShapeError
from caveat.evaluation import (
    CoverageCurve,
    Estimate,
    ReliabilityCurve,
    RiskCoverage,
    probability_transform,
)
from caveat.evaluation.estimates import Array
from caveat.evaluation.intervals import LEVELS
from caveat.evaluation.losses import losses_of
from caveat.evaluation.scores import default_score, score_of
from caveat.evaluation.targets import (
    named_labels,
    observed_labels,
    observed_values,
    regression_of,
)
from caveat.predictive import (
    ClassificationPredictive,
    Moments,
    Predictive,
    RegressionPredictive,
)
from caveat.reports.columns import FeatureTable, Rows
from caveat.reports.drivers import some_rows
from caveat.reports.markup import measured, percent

LEVEL = 0.9  # of the intervals that are shown
_MOST_WORK = 4_000_000  # rows times draws whose distribution is asked for
_SOME = 20_000  # rows that serve in any case
_ROUNDING = 1e-9  # nats, below which a mutual information is none


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportSubject(ABC):
    """Predictions of rows whose outcome is known.

    Attributes
    ----------
    predictive : Predictive
        With one output or label per row.
    y : Tensor
        What was observed.
    target, unit : str
        What is predicted, and in which unit; may be empty.
    table : FeatureTable, optional
        The features of the rows.
    foreign : array of shape (rows,) or Predictive, optional
        Out-of-distribution scores, or the predictive of foreign rows.
    notes : list of str
        What readers must know before they read on; filled while numbers are found.
    score_words, risk_words : str
        What ``scores`` and the mean of ``losses`` are called.
    """

    predictive: Predictive
    y: Tensor
    target: str
    unit: str
    table: FeatureTable | None = None
    foreign: Any = None
    notes: list[str] = field(default_factory=list)
    score_words: ClassVar[str]
    risk_words: ClassVar[str]

    @abstractmethod
    def risk(self, value: float) -> str:
        """A mean loss as text, with its unit."""

    @abstractmethod
    def relative_error(self) -> tuple[Array, bool]:
        """Monte Carlo error of rows, and whether of all of them."""

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.predictive)

    @property
    def n_draws(self) -> int:
        """Draws behind a prediction; 0 if nothing was sampled."""
        return self.predictive.n_draws

    @cached_property
    def scores(self) -> Array:
        """How uncertain each row is; higher is more so."""
        return score_of(self.predictive, default_score(self.predictive))

    @cached_property
    def losses(self) -> Array:
        """What the answer of each row costs."""
        return losses_of(self.predictive, self.y)

    @cached_property
    def curve(self) -> RiskCoverage:
        """Mean loss of the rows that are kept, for every threshold on the score."""
        return RiskCoverage.from_scores(self.scores, self.losses)

    @property
    def first_row(self) -> int:
        """The number of the first row."""
        return 0 if self.table is None else self.table.first_row

    @property
    def with_unit(self) -> str:
        """The target and its unit, for an axis."""
        name = self.target or "observed value"
        return f"{name} ({self.unit})" if self.unit else name


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class RegressionSubject(ReportSubject):
    """Predictions of numbers.

    Attributes
    ----------
    predictive : RegressionPredictive
        With one output per row.
    y : Tensor
        Of the shape of the mean.
    """

    predictive: RegressionPredictive
    score_words: ClassVar[str] = "predicted spread"
    risk_words: ClassVar[str] = "mean error"

    def risk(self, value: float) -> str:
        return measured(value, self.unit)

    @cached_property
    def observed(self) -> Array:
        """What was observed, shape (rows,)."""
        return flat(self.y)

    @cached_property
    def mean(self) -> Array:
        """Predictions, shape (rows,)."""
        return flat(self.predictive.mean)

    @cached_property
    def std(self) -> Array:
        """Their spread, shape (rows,)."""
        return flat(self.predictive.std)

    @cached_property
    def not_known(self) -> Array:
        """Share of the variance that is epistemic; NaN where there is none at all."""
        with np.errstate(invalid="ignore", divide="ignore"):
            share = flat(self.predictive.epistemic_variance) / self.std**2
        return np.where(np.isfinite(share), share, np.nan)

    @cached_property
    def judged_rows(self) -> Rows:
        """The rows whose whole distribution is judged: all, or some of very many."""
        most = max(_SOME, _MOST_WORK // max(self.n_draws, 1))
        return some_rows(self.n_rows, most)

    @cached_property
    def judged(self) -> tuple[RegressionPredictive, Tensor]:
        """Their predictive, and what was observed."""
        if len(self.judged_rows) == self.n_rows:
            return self.predictive, self.y
        return self.predictive[self.judged_rows], self.y[self.judged_rows]

    @cached_property
    def coverage(self) -> CoverageCurve:
        """Share of observations inside intervals, at all levels that there are."""
        predictive, y = self.judged
        return CoverageCurve.from_predictive(predictive, y, levels=self.levels)

    @cached_property
    def levels(self) -> list[float]:
        """Levels at which the predictive has intervals; conformal ones lack some."""
        known = [level for level in LEVELS if self._has(level)]
        if not known:
            raise ParameterError(
                "The predictive has no interval at any level from 5 % to 95 %, so "
                "there is nothing to report on. Calibrate it on more rows."
            )
        return known

    @property
    def level(self) -> float:
        """That of the intervals shown: 90 %, or the next lower that there is."""
        return max((v for v in self.levels if v <= LEVEL), default=self.levels[0])

    @property
    def inside(self) -> float:
        """Share of observations inside the intervals of ``level``."""
        place = int(np.abs(self.coverage.levels - self.level).argmin())
        return float(self.coverage.observed[place])

    @cached_property
    def transform(self) -> Array:
        """Probability of a value below the observed one, of the judged rows."""
        return flat(probability_transform(*self.judged))

    @cached_property
    def width(self) -> Estimate:
        """Mean width of the intervals of ``level``; of some rows, if there are many."""
        lower, upper = self.intervals(self.measured_rows)
        return Estimate.of_mean(upper - lower)

    @cached_property
    def measured_rows(self) -> Rows:
        """The rows whose intervals are measured: all, or some of very many."""
        return some_rows(self.n_rows, _SOME)

    def intervals(self, rows: Rows) -> tuple[Array, Array]:
        """Ends of the intervals of some rows."""
        lower, upper = self.predictive[rows].interval(self.level)
        return flat(lower), flat(upper)

    def relative_error(self) -> tuple[Array, bool]:
        error = flat(self.predictive.mean_error)
        with np.errstate(invalid="ignore", divide="ignore"):
            found = error / self.std
        return np.where(error == 0.0, 0.0, found), True

    def _has(self, level: float) -> bool:
        try:
            self.predictive[:1].inside(self.y[:1], level)
        except ParameterError:
            return False
        return True


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class ClassificationSubject(ReportSubject):
    """Predictions of classes.

    Attributes
    ----------
    predictive : ClassificationPredictive
        With one label per row.
    y : Tensor
        Class numbers, int64 of shape (rows,).
    classes : tuple of str
        Names of the classes.
    """

    predictive: ClassificationPredictive
    classes: tuple[str, ...]
    score_words: ClassVar[str] = "doubt"
    risk_words: ClassVar[str] = "error rate"

    def risk(self, value: float) -> str:
        return percent(value)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """Classes that were observed, shape (rows,)."""
        return np.asarray(self.y.numpy(force=True))

    @cached_property
    def answers(self) -> NDArray[np.int64]:
        """The most probable class of each row."""
        return np.asarray(self.predictive.label.numpy(force=True))

    @cached_property
    def confidence(self) -> Array:
        """Its probability."""
        return 1.0 - self.scores

    @cached_property
    def entropy(self) -> Array:
        """Of the probabilities of each row, in nats."""
        return flat(self.predictive.entropy)

    @cached_property
    def information(self) -> Array:
        """Mutual information of each row, in nats."""
        found = flat(self.predictive.mutual_information)
        return np.where(found < _ROUNDING, 0.0, found)  # a difference of entropies

    @cached_property
    def reliability(self) -> ReliabilityCurve:
        """Accuracy against confidence, in bins of equal width."""
        n_bins = int(np.clip(self.n_rows // 20, 5, 15))
        return ReliabilityCurve.from_predictive(self.predictive, self.y, n_bins=n_bins)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each class."""
        return np.bincount(self.labels, minlength=len(self.classes))

    def relative_error(self) -> tuple[Array, bool]:
        """Error of the lead of the first class over the second, over that lead."""
        error, rows = self._errors()
        probs = self.predictive.probs[torch.from_numpy(rows)].double()
        first, second = probs.topk(2, -1).indices.unbind(-1)
        lead = probs.gather(-1, first[:, None]) - probs.gather(-1, second[:, None])
        doubt = error.gather(-1, first[:, None]) + error.gather(-1, second[:, None])
        with np.errstate(invalid="ignore", divide="ignore"):
            found = flat(doubt) / flat(lead)
        return np.where(flat(doubt) == 0.0, 0.0, found), len(rows) == self.n_rows

    def _errors(self) -> tuple[Tensor, Rows]:
        """Monte Carlo errors of probabilities, and of which rows."""
        rows = np.arange(self.n_rows)
        work = self.n_rows * self.n_draws * len(self.classes)
        if work <= 2 * _MOST_WORK:
            return self.predictive.mean_error.double().cpu(), rows
        try:  # errors of very many rows take long, and some rows tell as much
            draws = self.predictive.draws
        except DrawsNotKeptError:
            return self.predictive.mean_error.double().cpu(), rows
        rows = some_rows(self.n_rows, _SOME // 4)
        probs = draws[:, torch.from_numpy(rows)].double().softmax(-1)
        return Moments.of(probs).mean_error.double().cpu(), rows


AnySubject: TypeAlias = RegressionSubject | ClassificationSubject
T = TypeVar("T")


def by_side(
    subject: AnySubject,
    of_numbers: Callable[[RegressionSubject], T],
    of_classes: Callable[[ClassificationSubject], T],
) -> T:
    """What the function for the side of the subject finds."""
    if isinstance(subject, ClassificationSubject):
        return of_classes(subject)
    return of_numbers(subject)


def subject_of(
    predictive: Predictive,
    y: Any,
    *,
    classes: Sequence[Any] | None,
    target: str,
    unit: str,
) -> AnySubject:
    """Checked predictions and observations, one output or label per row.

    Parameters
    ----------
    predictive : Predictive
        Of either side.
    y : array or Tensor
        Observations, class numbers, or names of classes.
    classes : sequence, optional
        The names, in the order of the class numbers.
    target, unit : str
        What is predicted, and in which unit.

    Returns
    -------
    RegressionSubject or ClassificationSubject
    """
    if isinstance(predictive, ClassificationPredictive):
        shape = predictive.probs.shape
        if len(shape) != 2:
            raise ShapeError(
                f"A report is about one label per row. Got labels of shape "
                f"{tuple(shape[1:-1])} for each row; count each label as a row: "
                f"CategoricalPredictive.from_logits(predictive.draws.flatten(1, -2)), "
                f"and y.flatten()."
            )
        labels = observed_labels(predictive, named_labels(predictive, y, classes))
        numbers = range(shape[-1]) if classes is None else classes
        names = _validation.class_names(numbers, shape[-1])
        return ClassificationSubject(
            target=target,
            unit=unit,
            predictive=predictive,
            y=labels.cpu(),
            classes=tuple(map(str, names)),
        )
    regression = regression_of(predictive)
    if math.prod(regression.mean.shape[1:]) != 1:
        outputs = tuple(regression.mean.shape[1:])
        raise ShapeError(
            f"A report is about one output per row. Got outputs of shape {outputs}; "
            f"make a report for each: for output k, GaussianPredictive.from_draws("
            f"predictive.draws[..., k:k+1], precision=predictive.precision"
            f"[..., k:k+1]), and y[..., k]."
        )
    values = observed_values(regression, named_labels(regression, y, classes))
    return RegressionSubject(target=target, unit=unit, predictive=regression, y=values)


def flat(values: Tensor) -> Array:
    """As float64, shape (rows,)."""
    return np.asarray(values.detach().double().cpu().reshape(-1).numpy())
