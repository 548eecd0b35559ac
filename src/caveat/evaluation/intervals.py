"""Whether intervals hold as many observations as they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from torch import Tensor

from caveat import _validation
from caveat.evaluation.estimates import Array, Estimate
from caveat.evaluation.targets import observed_values
from caveat.predictive import RegressionPredictive

LEVELS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())


def probability_transform(predictive: RegressionPredictive, y: Any) -> Tensor:
    """Predictive probability of a value below the observed one; uniform at best.

    Parameters
    ----------
    predictive : RegressionPredictive
        Of the rows. One of draws needs its draws.
    y : array or Tensor, shape (rows,) or that of the mean
        What was observed.

    Returns
    -------
    Tensor of float64, of the shape of the mean
        F(y) of each output on its own (ledger E104).
    """
    values = observed_values(predictive, y)
    return predictive.cdf(values).double()


def coverage(
    predictive: RegressionPredictive, y: Any, *, level: float = 0.9
) -> Estimate:
    """Share of observations inside the central intervals of a level.

    Parameters
    ----------
    predictive : RegressionPredictive
        Of the rows.
    y : array or Tensor, shape (rows,) or that of the mean
        What was observed.
    level : float, default 0.9
        What the intervals say.

    Returns
    -------
    Estimate
        Of each output on its own, averaged.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> predictive = GaussianPredictive.from_draws(torch.zeros(1, 4), precision=1.0)
    >>> print(coverage(predictive, [0.0, 1.0, -1.6, 1.7], level=0.9))
    0.75 ± 0.25
    """
    level = _validation.unit_interval("level", level)
    inside = _inside(predictive, y, [level])[0]
    return Estimate.of_mean(inside.mean(1))


@final
@dataclass(frozen=True, eq=False)
class CoverageCurve:
    """Share of observations inside the central intervals, at many levels.

    Attributes
    ----------
    levels : array, shape (levels,)
        What the intervals say.
    observed : array, shape (levels,)
        Share of observations inside.
    n_rows : int
        Rows it was measured on.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> predictive = GaussianPredictive.from_draws(torch.zeros(1, 4), precision=1.0)
    >>> y = [0.0, 1.0, -1.6, 1.7]
    >>> CoverageCurve.from_predictive(predictive, y, levels=[0.5, 0.9]).observed
    array([0.25, 0.75])
    """

    levels: Array
    observed: Array
    n_rows: int

    @classmethod
    def from_predictive(
        cls,
        predictive: RegressionPredictive,
        y: Any,
        *,
        levels: Sequence[float] = LEVELS,
    ) -> Self:
        """Compare intervals with what was observed.

        Parameters
        ----------
        predictive : RegressionPredictive
            Of the rows.
        y : array or Tensor, shape (rows,) or that of the mean
            What was observed.
        levels : sequence of float
            Each strictly between 0 and 1.

        Returns
        -------
        CoverageCurve
        """
        chosen = np.array(_validation.quantile_levels(levels))
        inside = _inside(predictive, y, chosen.tolist())
        return cls(chosen, inside.mean((1, 2)), inside.shape[1])

    @property
    def error(self) -> Array:
        """Standard error of ``observed`` if the levels were right (one output)."""
        return np.sqrt(self.levels * (1.0 - self.levels) / self.n_rows)


def _inside(predictive: RegressionPredictive, y: Any, levels: Sequence[float]) -> Array:
    """1 where y lies in the interval of a level, shape (levels, rows, outputs)."""
    values = observed_values(predictive, y)  # it also checks the predictive
    found = predictive.inside(values, levels)
    return found.double().numpy(force=True).reshape(len(found), found.shape[1], -1)
