"""Intervals and sets that hold the truth as often as they say, whatever the model.

Calibration rows are scored by how badly the model did; a new row may do as badly as
all but a few of them. Nothing is assumed but that rows are drawn alike.

.. [Vovk2005] V. Vovk, A. Gammerman, G. Shafer. Algorithmic learning in a random world.
   Springer, 2005.
.. [Lei2018] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman.
   Distribution-free predictive inference for regression. JASA 113, 2018.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final, overload

import torch

from caveat._summary import Summarised, TextSummary
from caveat.decisions.conformal_intervals import IntervalScore, ScaledResidual
from caveat.decisions.conformal_predictives import (
    ConformalIntervalPredictive,
    ConformalSetPredictive,
)
from caveat.decisions.conformal_sets import LeastAmbiguous, SetScore
from caveat.decisions.guarantees import CalibrationScores, Guarantee
from caveat.errors import InputTypeError, ShapeError
from caveat.evaluation.estimates import Array
from caveat.evaluation.targets import (
    named_labels,
    observed_labels,
    one_output,
    only_output,
    regression_of,
)
from caveat.predictive import (
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)


@final
@dataclass(frozen=True)
class ConformalIntervals(Summarised):
    """Intervals of a regression that keep their level.

    Make one by :func:`conformal`.

    Attributes
    ----------
    score : IntervalScore
        How badly a row can do.
    guarantee : Guarantee
        How badly a new row may do, and what is promised.
    calibration : CalibrationScores
        How badly the calibration rows did.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> draws = torch.zeros(1, 9, dtype=torch.float64)  # one draw of nine rows
    >>> held_out = GaussianPredictive.from_draws(draws, precision=1.0)
    >>> y = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6, 0.7, -0.8, 0.9]
    >>> intervals = conformal(held_out, y, level=0.8)
    >>> intervals.interval(held_out[:1])  # the 8th of 9 residuals
    (array([-0.8]), array([0.8]))
    >>> intervals.apply(held_out[:1]).interval(0.5)  # or any other level
    (tensor([-0.5000], dtype=torch.float64), tensor([0.5000], dtype=torch.float64))
    """

    score: IntervalScore
    guarantee: Guarantee
    calibration: CalibrationScores

    def summary(self) -> TextSummary:
        return _summary("ConformalIntervals", self.score, self.guarantee)

    @property
    def promise(self) -> str:
        """What is promised about new rows, in words."""
        return self.guarantee.promise

    def interval(self, predictive: RegressionPredictive) -> tuple[Array, Array]:
        """The interval of each row.

        Parameters
        ----------
        predictive : RegressionPredictive
            Of new rows, one output each.

        Returns
        -------
        lower, upper : array of float64, shape (rows,)
        """
        only_output(regression_of(predictive))
        return self.score.interval(predictive, self.guarantee.limit)

    def apply(self, predictive: RegressionPredictive) -> ConformalIntervalPredictive:
        """New rows with conformal intervals of any level, and all else as it was.

        Parameters
        ----------
        predictive : RegressionPredictive
            Of new rows, one output each.

        Returns
        -------
        ConformalIntervalPredictive
        """
        only_output(regression_of(predictive))
        return ConformalIntervalPredictive(
            predictive.n_draws, predictive, self.score, self.calibration
        )


@final
@dataclass(frozen=True)
class ConformalSets(Summarised):
    """Sets of classes that hold the right one as often as they say.

    Make one by :func:`conformal`.

    Attributes
    ----------
    score : SetScore
        How implausible a class is.
    guarantee : Guarantee
        How implausible the class of a new row may be, and what is promised.
    n_classes : int or None
        Of the rows it was calibrated on; None if that was not noted.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.tensor([[[0.6, 0.3, 0.1]] * 9]).log()  # one draw, nine rows
    >>> held_out = CategoricalPredictive.from_logits(logits)
    >>> sets = conformal(held_out, [0, 0, 0, 0, 0, 0, 1, 1, 2], level=0.8)
    >>> sets.sets(held_out[:1])
    array([[ True,  True, False]])
    """

    score: SetScore
    guarantee: Guarantee
    n_classes: int | None = None

    def summary(self) -> TextSummary:
        return _summary("ConformalSets", self.score, self.guarantee)

    @property
    def promise(self) -> str:
        """What is promised about new rows, in words."""
        return self.guarantee.promise

    def sets(self, predictive: ClassificationPredictive) -> Any:
        """The plausible classes of each row.

        Parameters
        ----------
        predictive : ClassificationPredictive
            Of new rows, one label each.

        Returns
        -------
        array of bool, shape (rows, classes)
            An empty set says that no class is plausible at this level.
        """
        found, known = self.score.sets(predictive, self.guarantee.limit), self.n_classes
        if known is not None and found.shape[-1] != known:
            raise ShapeError(
                f"The sets were calibrated on {known} classes, so they say nothing of "
                f"predictions of {found.shape[-1]}."
            )
        return found

    def apply(self, predictive: ClassificationPredictive) -> ConformalSetPredictive:
        """New rows with conformal sets, and all else as it was.

        Parameters
        ----------
        predictive : ClassificationPredictive
            Of new rows, one label each.

        Returns
        -------
        ConformalSetPredictive
        """
        sets = torch.from_numpy(self.sets(predictive)).to(predictive.probs.device)
        level = self.guarantee.level
        return ConformalSetPredictive(predictive.n_draws, predictive, sets, level)


@overload
def conformal(
    predictive: ClassificationPredictive,
    y: Any,
    *,
    level: float = ...,
    score: SetScore | None = ...,
    classes: Sequence[Any] | None = ...,
) -> ConformalSets: ...
@overload
def conformal(
    predictive: RegressionPredictive,
    y: Any,
    *,
    level: float = ...,
    score: IntervalScore | None = ...,
) -> ConformalIntervals: ...
def conformal(
    predictive: Predictive,
    y: Any,
    *,
    level: float = 0.9,
    score: Any = None,
    classes: Sequence[Any] | None = None,
) -> ConformalIntervals | ConformalSets:
    """Calibrate intervals, or sets of classes, on rows whose outcome is known.

    Parameters
    ----------
    predictive : Predictive
        Of calibration rows, which trained nothing; one output or label per row.
    y : array or Tensor, shape (rows,)
        What was observed there.
    level : float, default 0.9
        Probability that a new row is covered.
    score : IntervalScore or SetScore, optional
        How badly a row did: :class:`ScaledResidual` (the default) or
        :class:`QuantileResidual` for regression, :class:`LeastAmbiguous` (the default)
        or :class:`AdaptiveSets` for classification.
    classes : sequence, optional
        Names of the classes, in the order of their numbers, if ``y`` holds names.

    Returns
    -------
    ConformalIntervals or ConformalSets
        Whose ``interval`` or ``sets`` serve new rows, and whose ``apply`` makes
        predictives of them.
    """
    y = named_labels(predictive, y, classes)
    if isinstance(predictive, ClassificationPredictive):
        score = LeastAmbiguous() if score is None else _kind(score, SetScore)
        labels = observed_labels(predictive, y)
        found = score.calibration_scores(predictive, labels)
        n_classes = predictive.probs.shape[-1]
        return ConformalSets(score, Guarantee.of(found, level), n_classes)
    score = ScaledResidual() if score is None else _kind(score, IntervalScore)
    regression = regression_of(predictive)
    values = one_output(regression, y).double().numpy(force=True)
    found = score.calibration_scores(regression, values)
    calibration = CalibrationScores.of(found)
    return ConformalIntervals(score, calibration.guarantee(level), calibration)


def _summary(name: str, score: Any, guarantee: Guarantee) -> TextSummary:
    facts = {
        "score": repr(score),
        "limit": f"{guarantee.limit:.4g}",
        "promise": guarantee.promise,
    }
    return TextSummary(name, facts)


def _kind(score: Any, kind: type[Any]) -> Any:
    if not isinstance(score, kind):
        raise InputTypeError(
            f"score must be a {kind.__name__} for this kind of predictive. "
            f"Got {score!r}."
        )
    return score
