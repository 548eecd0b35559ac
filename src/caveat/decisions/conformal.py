"""Intervals and sets that hold the truth as often as they say, whatever the model.

Calibration rows are scored by how badly the model did; a new row may do as badly as
all but a few of them. Nothing is assumed but that rows are drawn alike.

.. [Vovk2005] V. Vovk, A. Gammerman, G. Shafer. Algorithmic learning in a random world.
   Springer, 2005.
.. [Lei2018] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman.
   Distribution-free predictive inference for regression. JASA 113, 2018.
"""

from dataclasses import dataclass
from typing import Any, Self, final, overload

import numpy as np
from scipy.stats import beta

from caveat import _validation as validation
from caveat.decisions.conformal_intervals import IntervalScore, ScaledResidual
from caveat.decisions.conformal_sets import LeastAmbiguous, SetScore
from caveat.decisions.ranks import covering_rank, least_rows
from caveat.errors import InputTypeError, ParameterError
from caveat.evaluation.estimates import Array
from caveat.evaluation.targets import (
    Regression,
    observed_labels,
    one_output,
    regression_of,
)
from caveat.predictive import CategoricalPredictive, Predictive


@final
@dataclass(frozen=True)
class Guarantee:
    """The limit of a score that new rows keep with a given probability.

    Attributes
    ----------
    level : float
        Probability that was asked for.
    limit : float
        The score of the calibration row of rank ``rank`` (ledger E113).
    rank, n_rows : int
        Its rank among the calibration rows, and their number.
    """

    level: float
    limit: float
    rank: int
    n_rows: int

    @classmethod
    def of(cls, scores: Array, level: float) -> Self:
        """From the scores of calibration rows, higher being worse.

        Parameters
        ----------
        scores : array, shape (rows,)
            Without NaN.
        level : float
            Strictly between 0 and 1.

        Returns
        -------
        Guarantee
        """
        level, n_rows = validation.unit_interval("level", level), len(scores)
        rank = covering_rank(n_rows, level)
        if rank > n_rows:
            raise ParameterError(
                f"A level of {level} needs at least {least_rows(level)} calibration "
                f"rows. Got {n_rows}; bring more, or ask for a lower level."
            )
        return cls(level, float(np.sort(scores)[rank - 1]), rank, n_rows)

    def coverage_range(self, confidence: float = 0.9) -> tuple[float, float]:
        """Between which bounds the coverage of this one calibration set lies.

        Parameters
        ----------
        confidence : float, default 0.9
            Probability of the range, over calibration sets.

        Returns
        -------
        low, high : float
            If scores do not tie, the coverage has the law Beta(k, n + 1 - k); ties
            raise it.
        """
        tail = 0.5 * (1.0 - validation.unit_interval("confidence", confidence))
        law = beta(self.rank, self.n_rows + 1 - self.rank)
        return float(law.ppf(tail)), float(law.ppf(1.0 - tail))

    @property
    def promise(self) -> str:
        """What is promised about new rows, in words."""
        low, high = self.coverage_range()
        return (
            f"A new row is covered with probability {self.level:.1%} or more, averaged "
            f"over sets of {self.n_rows} calibration rows drawn as it is; for one such "
            f"set the probability is mostly {low:.1%} to {high:.1%}. It is an average "
            f"over rows, not a promise about each."
        )


@final
@dataclass(frozen=True)
class ConformalIntervals:
    """Intervals of a regression that keep their level.

    Make one by :func:`conformal`.

    Attributes
    ----------
    score : IntervalScore
        How badly a row can do.
    guarantee : Guarantee
        How badly a new row may do, and what is promised.

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
    """

    score: IntervalScore
    guarantee: Guarantee

    @property
    def promise(self) -> str:
        """What is promised about new rows, in words."""
        return self.guarantee.promise

    def interval(self, predictive: Regression) -> tuple[Array, Array]:
        """The interval of each row.

        Parameters
        ----------
        predictive : GaussianPredictive or a Student-t one
            Of new rows, one output each.

        Returns
        -------
        lower, upper : array of float64, shape (rows,)
        """
        return self.score.interval(predictive, self.guarantee.limit)


@final
@dataclass(frozen=True)
class ConformalSets:
    """Sets of classes that hold the right one as often as they say.

    Make one by :func:`conformal`.

    Attributes
    ----------
    score : SetScore
        How implausible a class is.
    guarantee : Guarantee
        How implausible the class of a new row may be, and what is promised.

    Examples
    --------
    >>> import torch
    >>> logits = torch.tensor([[[0.6, 0.3, 0.1]] * 9]).log()  # one draw, nine rows
    >>> held_out = CategoricalPredictive.from_logits(logits)
    >>> sets = conformal(held_out, [0, 0, 0, 0, 0, 0, 1, 1, 2], level=0.8)
    >>> sets.sets(held_out[:1])
    array([[ True,  True, False]])
    """

    score: SetScore
    guarantee: Guarantee

    @property
    def promise(self) -> str:
        """What is promised about new rows, in words."""
        return self.guarantee.promise

    def sets(self, predictive: CategoricalPredictive) -> Any:
        """The plausible classes of each row.

        Parameters
        ----------
        predictive : CategoricalPredictive
            Of new rows, one label each.

        Returns
        -------
        array of bool, shape (rows, classes)
            An empty set says that no class is plausible at this level.
        """
        return self.score.sets(predictive, self.guarantee.limit)


@overload
def conformal(
    predictive: CategoricalPredictive,
    y: Any,
    *,
    level: float = ...,
    score: SetScore | None = ...,
) -> ConformalSets: ...
@overload
def conformal(
    predictive: Regression,
    y: Any,
    *,
    level: float = ...,
    score: IntervalScore | None = ...,
) -> ConformalIntervals: ...
def conformal(
    predictive: Predictive, y: Any, *, level: float = 0.9, score: Any = None
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

    Returns
    -------
    ConformalIntervals or ConformalSets
        Whose ``interval`` or ``sets`` serve new rows.
    """
    if isinstance(predictive, CategoricalPredictive):
        score = LeastAmbiguous() if score is None else _kind(score, SetScore)
        labels = observed_labels(predictive, y)
        found = score.calibration_scores(predictive, labels)
        return ConformalSets(score, Guarantee.of(found, level))
    score = ScaledResidual() if score is None else _kind(score, IntervalScore)
    regression = regression_of(predictive)
    values = one_output(regression, y).double().numpy(force=True)
    found = score.calibration_scores(regression, values)
    return ConformalIntervals(score, Guarantee.of(found, level))


def _kind(score: Any, kind: type[Any]) -> Any:
    if not isinstance(score, kind):
        raise InputTypeError(
            f"score must be a {kind.__name__} for this kind of predictive. "
            f"Got {score!r}."
        )
    return score
