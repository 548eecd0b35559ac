"""Whether probabilities come true: reliability curve and calibration error."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import NDArray

from caveat import _validation
from caveat._optional import require
from caveat.errors import ParameterError
from caveat.evaluation.estimates import Array, Estimate, mean_error
from caveat.evaluation.targets import observed_labels
from caveat.predictive import ClassificationPredictive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from caveat.evaluation.calibration_displays import ReliabilityDisplay

UNIFORM, QUANTILE = "uniform", "quantile"


@final
@dataclass(frozen=True, eq=False)
class ReliabilityCurve:
    """How often the most probable class is right, by the probability it was given.

    Attributes
    ----------
    confidence : array, shape (bins,)
        Mean probability of the most probable class in each bin that holds rows.
    accuracy : array, shape (bins,)
        Share of these rows whose most probable class was observed.
    counts : array of int, shape (bins,)
        Rows in each bin.
    ece : Estimate
        Expected calibration error: the mean distance of the two, weighted by rows
        (ledger E102). It is never negative, so its errors add up: see ``ece_floor``.
    ece_floor : float
        What ``ece`` would be on average, with these probabilities and so few rows, if
        they were right (ledger E103).

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.tensor([[[0.8, 0.2]] * 5]).log()  # one draw, five rows
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> curve = ReliabilityCurve.from_predictive(predictive, [0, 0, 0, 1, 1])
    >>> curve.confidence.round(3), curve.accuracy, curve.counts
    (array([0.8]), array([0.6]), array([5]))
    >>> print(curve.ece)
    0.20 ± 0.24
    """

    confidence: Array
    accuracy: Array
    counts: NDArray[np.int64]
    ece: Estimate
    ece_floor: float

    @classmethod
    def from_predictive(
        cls,
        predictive: ClassificationPredictive,
        y: Any,
        *,
        n_bins: int = 15,
        strategy: str = UNIFORM,
    ) -> Self:
        """Compare the probabilities with what was observed.

        Parameters
        ----------
        predictive : ClassificationPredictive
            Of the rows.
        y : array or Tensor of integers, shape (rows, *extra)
            Class numbers. Several labels of a row count as rows of their own.
        n_bins : int, default 15
            How many bins the probabilities are sorted into.
        strategy : {"uniform", "quantile"}, default "uniform"
            Bins of equal width on (0, 1], or with equally many rows.

        Returns
        -------
        ReliabilityCurve
        """
        labels = observed_labels(predictive, y)
        top = predictive.probs.double().amax(-1).numpy(force=True).reshape(-1)
        right = (predictive.label == labels).double().numpy(force=True).reshape(-1)
        return cls._of(top, right, _bins(top, n_bins, strategy))

    @classmethod
    def _of(cls, top: Array, right: Array, bins: NDArray[np.int64]) -> Self:
        counts = np.bincount(bins)
        full = counts > 0
        sure, hit, variance = (
            _sums(bins, values) for values in (top, right, top * (1.0 - top))
        )
        return cls(
            sure[full] / counts[full],
            hit[full] / counts[full],
            counts[full],
            _calibration_error(right - top, bins),
            _floor(variance, len(top)),
        )

    @property
    def accuracy_error(self) -> Array:
        """Standard error of ``accuracy`` if the confidence of a bin were right."""
        return np.sqrt(self.confidence * (1.0 - self.confidence) / self.counts)

    def plot(self, ax: "Axes | None" = None, **style: Any) -> "ReliabilityDisplay":
        """Draw the curve; needs matplotlib, the extra ``[plot]``.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            As for :meth:`ReliabilityDisplay.plot`.

        Returns
        -------
        ReliabilityDisplay
            Drawn, with ``ax_`` and ``figure_``.
        """
        require("matplotlib", extra="plot")
        from caveat.evaluation.calibration_displays import ReliabilityDisplay

        return ReliabilityDisplay(self).plot(ax, **style)


def ece(
    predictive: ClassificationPredictive,
    y: Any,
    *,
    n_bins: int = 15,
    strategy: str = UNIFORM,
) -> Estimate:
    """Expected calibration error of the most probable class, with its error.

    Parameters
    ----------
    predictive, y, n_bins, strategy
        As for :meth:`ReliabilityCurve.from_predictive`, which also tells what it would
        be if the probabilities were right.

    Returns
    -------
    Estimate
    """
    curve = ReliabilityCurve.from_predictive(
        predictive, y, n_bins=n_bins, strategy=strategy
    )
    return curve.ece


def _bins(top: Array, n_bins: int, strategy: str) -> NDArray[np.int64]:
    """The bin of each row; bins are open on the left, as scikit-learn's."""
    n_bins = _validation.positive_int("n_bins", n_bins)
    levels = np.linspace(0.0, 1.0, n_bins + 1)
    if strategy == UNIFORM:
        edges = levels
    elif strategy == QUANTILE:
        edges = np.quantile(top, levels)
    else:
        raise ParameterError(
            f"strategy must be {UNIFORM!r} or {QUANTILE!r}. Got {strategy!r}."
        )
    return np.searchsorted(edges[1:-1], top)


def _sums(bins: NDArray[np.int64], values: Array) -> Array:
    """The sum of the values in each bin."""
    return np.asarray(np.bincount(bins, weights=values), dtype=np.float64)


def _calibration_error(gaps: Array, bins: NDArray[np.int64]) -> Estimate:
    """ECE of rows with the gaps right - confidence."""
    sums = _sums(bins, gaps)
    # E102: ECE = (1/n) sum_b |sum_{i in b} gap_i| = (1/n) sum_i s_b(i) gap_i, with s_b
    #       the sign of the sum of bin b: a mean over rows, and so is its error
    signed = np.sign(sums)[bins] * gaps
    return Estimate(float(signed.mean()), mean_error(signed))


def _floor(variances: Array, n_rows: int) -> float:
    """ECE to be expected of right probabilities; ``variances`` are sums per bin."""
    # E103: E|N(0, v)| = sqrt(2 v / pi), v = sum_{i in b} p_i (1 - p_i)
    return float(np.sqrt(2.0 * variances / math.pi).sum() / n_rows)
