"""Whether intervals hold as many observations as they say."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor

from caveat import _validation
from caveat.evaluation.estimates import Array, Estimate
from caveat.evaluation.targets import Regression, observed_values
from caveat.predictive import GaussianPredictive
from caveat.predictive.moments import BLOCK

LEVELS = tuple(np.round(np.arange(0.05, 1.0, 0.05), 2).tolist())


def probability_transform(predictive: Regression, y: Any) -> Tensor:
    """Predictive probability of a value below the observed one; uniform at best.

    Parameters
    ----------
    predictive : GaussianPredictive or a Student-t one
        Of the rows. A Gaussian one needs its draws.
    y : array or Tensor, shape (rows,) or that of the mean
        What was observed.

    Returns
    -------
    Tensor of float64, of the shape of the mean
        F(y) of each output on its own (ledger E104). An observation lies inside the
        central interval of level L if ``abs(2 F - 1) <= L``.
    """
    values = observed_values(predictive, y)
    if isinstance(predictive, GaussianPredictive):
        return _mixture_cdf(predictive, values)
    return predictive.cdf(values).double()


def coverage(predictive: Regression, y: Any, *, level: float = 0.9) -> Estimate:
    """Share of observations inside the central intervals of a level.

    Parameters
    ----------
    predictive : GaussianPredictive or a Student-t one
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
    >>> predictive = GaussianPredictive.from_draws(torch.zeros(1, 4), precision=1.0)
    >>> print(coverage(predictive, [0.0, 1.0, -1.6, 1.7], level=0.9))
    0.75 ± 0.25
    """
    level = _validation.unit_interval("level", level)
    inside = _centrality(predictive, y) <= level
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
        cls, predictive: Regression, y: Any, *, levels: Sequence[float] = LEVELS
    ) -> Self:
        """Compare intervals with what was observed.

        Parameters
        ----------
        predictive : GaussianPredictive or a Student-t one
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
        depth = _centrality(predictive, y)
        observed = [float((depth <= level).mean()) for level in chosen]
        return cls(chosen, np.array(observed), len(depth))

    @property
    def error(self) -> Array:
        """Standard error of ``observed`` if the levels were right (one output)."""
        return np.sqrt(self.levels * (1.0 - self.levels) / self.n_rows)


def _centrality(predictive: Regression, y: Any) -> Array:
    """Level of the central interval that ends at y, shape (rows, outputs)."""
    below = probability_transform(predictive, y).numpy(force=True)
    return np.abs(2.0 * below - 1.0).reshape(len(below), -1)


def _mixture_cdf(predictive: GaussianPredictive, y: Tensor) -> Tensor:
    draws, precision = predictive.draws, predictive.draw_precision
    y = y.double()
    total = torch.zeros_like(y)
    size = max(BLOCK // max(y.numel(), 1), 1)
    for block, tau in zip(draws.split(size), precision.split(size), strict=True):
        # E104: F(y) = (1/T) sum_t Phi((y - f_t) sqrt(tau_t))
        scores = (y - block.double()) * tau.double().sqrt()
        total += torch.special.ndtr(scores).sum(0)
    return total / len(draws)
