"""What is gained by answering only where one is sure: risk against coverage.

.. [Geifman2017] Y. Geifman, R. El-Yaniv. Selective classification for deep neural
   networks. NeurIPS 2017.
.. [Malinin2020] A. Malinin, B. Mlodozeniec, M. Gales. Ensemble distribution
   distillation. ICLR 2020 (retention curves).
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from caveat._optional import require
from caveat.evaluation.estimates import Array, Estimate, bootstrap_error
from caveat.evaluation.losses import checked_losses, losses_of
from caveat.evaluation.scores import (
    Score,
    default_score,
    score_of,
    scores_of_rows,
)
from caveat.predictive import Predictive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from caveat.evaluation.selective_displays import RiskCoverageDisplay


@final
@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Mean loss of the accepted rows, for every threshold on a score.

    Accepted are the rows whose score is at most the threshold. Rows of the same score
    are accepted together, so that the curve has a point for each different score.

    Attributes
    ----------
    scores, losses : array, shape (rows,)
        What it was made from: how uncertain each row is, and what its answer costs.
    thresholds : array, shape (points,)
        The different scores, in order.
    counts : array of int, shape (points,)
        Rows accepted at each.
    risk : array, shape (points,)
        Their mean loss (ledger E108).

    Examples
    --------
    >>> curve = RiskCoverage.from_scores([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 0])
    >>> curve.coverage, curve.risk.round(3)
    (array([0.25, 0.5 , 0.75, 1.  ]), array([0.   , 0.   , 0.333, 0.25 ]))
    >>> round(curve.aurc.value, 4)
    0.1458
    """

    scores: Array
    losses: Array
    thresholds: Array
    counts: NDArray[np.int64]
    risk: Array

    @classmethod
    def from_scores(cls, scores: Any, losses: Any) -> Self:
        """The curve of scores and losses.

        Parameters
        ----------
        scores : array, shape (rows,)
            Higher is more uncertain; not NaN.
        losses : array, shape (rows,)
            Finite and at least 0; for errors, 0 or 1.

        Returns
        -------
        RiskCoverage
        """
        ranked = scores_of_rows(scores)
        cost = checked_losses(losses, len(ranked))
        thresholds, place = np.unique(ranked, return_inverse=True)
        counts = np.bincount(place).cumsum()
        total = np.bincount(place, weights=cost).cumsum()
        # E108: R(t) = sum_i [s_i <= t] loss_i / sum_i [s_i <= t]
        return cls(ranked, cost, thresholds, counts, total / counts)

    @classmethod
    def from_predictive(
        cls,
        predictive: Predictive,
        y: Any,
        *,
        score: Score | None = None,
        loss: Any = None,
    ) -> Self:
        """The curve of a predictive and what was observed.

        Parameters
        ----------
        predictive : Predictive
            With one output, or one label, per row.
        y : array or Tensor, shape (rows,)
            Observations, or class numbers.
        score : str or callable, optional
            As for :func:`caveat.evaluation.score_of`; by default the least confidence
            of a classification and the standard deviation of a regression.
        loss : callable or array of shape (rows,), optional
            A function of the predictive and ``y``, or the losses themselves; by default
            1 for a wrong class, and the absolute error of a regression.

        Returns
        -------
        RiskCoverage
        """
        chosen = default_score(predictive) if score is None else score
        scores = score_of(predictive, chosen)
        return cls.from_scores(scores, losses_of(predictive, y, loss))

    @property
    def coverage(self) -> Array:
        """Share of rows accepted at each threshold."""
        return self.counts / len(self.scores)

    @property
    def retained_error(self) -> Array:
        """Loss per row if the rows not accepted are answered without loss."""
        return self.risk * self.coverage

    @cached_property
    def risk_error(self) -> Array:
        """Standard error of ``risk`` at each threshold; infinite for one row."""
        squares = np.bincount(
            np.searchsorted(self.thresholds, self.scores), weights=self.losses**2
        ).cumsum()
        variance = np.maximum(squares / self.counts - self.risk**2, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            error = np.sqrt(variance / (self.counts - 1))
        return np.where(self.counts > 1, error, np.inf)

    @cached_property
    def aurc(self) -> Estimate:
        """Area under the curve: the risk averaged over coverages (ledger E109).

        Its error is by drawing rows again.
        """
        return _with_error(_mean_risk, self.scores, self.losses)

    @cached_property
    def excess_aurc(self) -> Estimate:
        """``aurc`` beyond that of the best order, by the losses themselves."""

        def excess(scores: Array, losses: Array) -> float:
            return _mean_risk(scores, losses) - _mean_risk(losses, losses)

        return _with_error(excess, self.scores, self.losses)

    @cached_property
    def retention_area(self) -> Estimate:
        """Area under ``retained_error`` against the share of rows retained."""
        return _with_error(_mean_retained, self.scores, self.losses)

    def plot(self, ax: "Axes | None" = None, **style: Any) -> "RiskCoverageDisplay":
        """Draw the curve; needs matplotlib, the extra ``[plot]``.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            As for :meth:`RiskCoverageDisplay.plot`.

        Returns
        -------
        RiskCoverageDisplay
            Drawn, with ``ax_`` and ``figure_``.
        """
        require("matplotlib", extra="plot")
        from caveat.evaluation.selective_displays import RiskCoverageDisplay

        return RiskCoverageDisplay(self).plot(ax, **style)


def aurc(
    predictive: Predictive,
    y: Any,
    *,
    score: Score | None = None,
    loss: Any = None,
) -> Estimate:
    """Area under the risk-coverage curve; lower is better.

    Parameters
    ----------
    predictive, y, score, loss
        As for :meth:`RiskCoverage.from_predictive`.

    Returns
    -------
    Estimate
        In the units of the loss: the risk, averaged over all coverages.
    """
    return RiskCoverage.from_predictive(predictive, y, score=score, loss=loss).aurc


def _with_error(statistic: Any, scores: Array, losses: Array) -> Estimate:
    error = bootstrap_error(statistic, scores, losses)
    return Estimate(statistic(scores, losses), error)


def _mean_risk(scores: Array, losses: Array) -> float:
    total = _cumulated(scores, losses)
    # E109: AURC = (1/n) sum_k (1/k) sum_{i <= k} loss_(i), rows in the order of scores
    return float((total / np.arange(1, len(total) + 1)).mean())


def _mean_retained(scores: Array, losses: Array) -> float:
    total = _cumulated(scores, losses)
    return float((total / len(total)).mean())


def _cumulated(scores: Array, losses: Array) -> Array:
    """Cumulated losses by score; rows of the same score share their mean loss."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean = np.bincount(place, weights=losses) / counts
    return np.repeat(mean, counts).cumsum()
