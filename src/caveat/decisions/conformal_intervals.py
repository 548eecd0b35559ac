"""How badly a regression does on a row, and the interval that does no worse.

.. [Lei2018] J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman.
   Distribution-free predictive inference for regression. JASA 113, 2018.
.. [Romano2019] Y. Romano, E. Patterson, E. Candès. Conformalized quantile regression.
   NeurIPS 2019.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from torch import Tensor

from caveat import _validation as validation
from caveat.decisions.ranks import slack
from caveat.errors import ParameterError, ShapeError
from caveat.evaluation.estimates import Array
from caveat.predictive import RegressionPredictive


class IntervalScore(ABC):
    """A number that says how badly a predictive did on an observation."""

    @abstractmethod
    def calibration_scores(self, predictive: RegressionPredictive, y: Array) -> Array:
        """How badly each row did.

        Parameters
        ----------
        predictive : RegressionPredictive
            One output per row.
        y : array, shape (rows,)
            What was observed.

        Returns
        -------
        array, shape (rows,)
            Higher is worse.
        """

    @abstractmethod
    def interval(
        self, predictive: RegressionPredictive, limit: float
    ) -> tuple[Array, Array]:
        """All observations whose score would be at most ``limit``.

        Parameters
        ----------
        predictive : RegressionPredictive
            One output per row.
        limit : float
            Of the score.

        Returns
        -------
        lower, upper : array, shape (rows,)
        """

    @abstractmethod
    def in_units(self, scores: Array, factor: float) -> Array:
        """The scores there would be if y and its predictive were ``factor`` times it.

        Parameters
        ----------
        scores : array
            Of calibration rows.
        factor : float
            Above 0.

        Returns
        -------
        array, of the same shape
        """


@final
@dataclass(frozen=True)
class ScaledResidual(IntervalScore):
    """Distance from the mean in standard deviations [Lei2018]_ (ledger E117).

    Intervals are centred at the mean, and as wide as the standard deviation says,
    times one factor for all rows. The draws are not needed.
    """

    def calibration_scores(self, predictive: RegressionPredictive, y: Array) -> Array:
        mean, std = _mean_and_std(predictive)
        # E117: s = |y - mean| / std;  interval: mean ± limit std
        return np.abs(y - mean) / std

    def interval(
        self, predictive: RegressionPredictive, limit: float
    ) -> tuple[Array, Array]:
        mean, std = _mean_and_std(predictive)
        return _outwards(mean - limit * std, mean + limit * std)

    def in_units(self, scores: Array, factor: float) -> Array:
        return scores


@final
@dataclass(frozen=True)
class QuantileResidual(IntervalScore):
    """Distance outside the predictive's own interval [Romano2019]_ (ledger E118).

    Both ends of every interval move by the same distance, so that skewed predictives
    keep their shape. A predictive of draws needs its draws.

    Attributes
    ----------
    level : float, default 0.9
        Of the predictive's own interval; best that of the conformal one.
    """

    level: float = 0.9

    def __post_init__(self) -> None:
        validation.unit_interval("level", self.level)

    def calibration_scores(self, predictive: RegressionPredictive, y: Array) -> Array:
        lower, upper = map(_column, predictive.interval(self.level))
        # E118: s = max(lower - y, y - upper);  interval: lower - limit, upper + limit
        return np.maximum(lower - y, y - upper)

    def interval(
        self, predictive: RegressionPredictive, limit: float
    ) -> tuple[Array, Array]:
        lower, upper = map(_column, predictive.interval(self.level))
        middle = 0.5 * (lower + upper)  # a negative limit must not cross it
        lower = np.minimum(lower - limit, middle)
        return _outwards(lower, np.maximum(upper + limit, middle))

    def in_units(self, scores: Array, factor: float) -> Array:
        return factor * scores


def _outwards(lower: Array, upper: Array) -> tuple[Array, Array]:
    """Both ends by as much as rounding may have moved them."""
    room = slack(torch.float64) * np.maximum(np.abs(lower), np.abs(upper))
    return lower - room, upper + room


def _mean_and_std(predictive: RegressionPredictive) -> tuple[Array, Array]:
    mean, std = _column(predictive.mean), _column(predictive.std)
    if not bool((np.isfinite(mean) & np.isfinite(std) & (std > 0.0)).all()):
        raise ParameterError(
            "Some rows have no finite mean or standard deviation to scale by (a "
            "Student-t with few degrees of freedom). Pass score=QuantileResidual()."
        )
    return mean, std


def _column(values: Tensor) -> Array:
    if values.numel() != len(values):
        raise ShapeError(
            f"The predictive must have one output per row. Got outputs of shape "
            f"{tuple(values.shape[1:])}; make one predictive for each output."
        )
    return values.double().reshape(-1).numpy(force=True)
