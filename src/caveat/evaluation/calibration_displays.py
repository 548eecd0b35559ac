"""Figures of calibration: whether probabilities and intervals keep their word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

from matplotlib.axes import Axes

from caveat.evaluation.axes import GREY, LineDisplay, diagonal, shade
from caveat.evaluation.intervals import LEVELS, CoverageCurve
from caveat.evaluation.reliability import UNIFORM, ReliabilityCurve
from caveat.predictive import ClassificationPredictive, RegressionPredictive

_POINTS = {"marker": "o", "markersize": 4}


@final
@dataclass(eq=False)
class ReliabilityDisplay(LineDisplay):
    """Accuracy against confidence; right probabilities lie on the diagonal.

    Bars are two standard errors of a bin whose confidence is right.

    Attributes
    ----------
    curve : ReliabilityCurve
        What is drawn.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.randn(9, 50, 3, generator=torch.Generator().manual_seed(0))
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> display = ReliabilityDisplay.from_predictive(predictive, predictive.label)
    >>> display.ax_.get_xlabel()
    'confidence'
    """

    curve: ReliabilityCurve

    @classmethod
    def from_predictive(
        cls,
        predictive: ClassificationPredictive,
        y: Any,
        *,
        n_bins: int = 15,
        strategy: str = UNIFORM,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Compare probabilities with what was observed, and draw it.

        Parameters
        ----------
        predictive, y, n_bins, strategy
            As for :meth:`ReliabilityCurve.from_predictive`.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            As for :meth:`plot`.

        Returns
        -------
        ReliabilityDisplay
            Drawn.
        """
        curve = ReliabilityCurve.from_predictive(
            predictive, y, n_bins=n_bins, strategy=strategy
        )
        return cls(curve).plot(ax, **style)

    def _draw(self, ax: Axes, label: str | None, line: dict[str, Any]) -> None:
        curve, style = self.curve, {**_POINTS, "capsize": 2, **line}
        diagonal(ax)
        name, bars = label, 2.0 * curve.accuracy_error
        if name is None:
            name = f"ECE {curve.ece}"
        ax.errorbar(curve.confidence, curve.accuracy, yerr=bars, label=name, **style)
        ax.set(xlabel="confidence", ylabel="accuracy")


@final
@dataclass(eq=False)
class CoverageDisplay(LineDisplay):
    """Share of observations inside intervals, against what the intervals say.

    The shade is two standard errors of right intervals.

    Attributes
    ----------
    curve : CoverageCurve
        What is drawn.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> predictive = GaussianPredictive.from_draws(torch.zeros(1, 9), precision=1.0)
    >>> display = CoverageDisplay.from_predictive(predictive, torch.linspace(-2, 2, 9))
    >>> len(display.ax_.lines)  # the diagonal and the curve
    2
    """

    curve: CoverageCurve

    @classmethod
    def from_predictive(
        cls,
        predictive: RegressionPredictive,
        y: Any,
        *,
        levels: Sequence[float] = LEVELS,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Compare intervals with what was observed, and draw it.

        Parameters
        ----------
        predictive, y, levels
            As for :meth:`CoverageCurve.from_predictive`.
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            As for :meth:`plot`.

        Returns
        -------
        CoverageDisplay
            Drawn.
        """
        curve = CoverageCurve.from_predictive(predictive, y, levels=levels)
        return cls(curve).plot(ax, **style)

    def _draw(self, ax: Axes, label: str | None, line: dict[str, Any]) -> None:
        levels, twice = self.curve.levels, 2.0 * self.curve.error
        diagonal(ax)
        ax.fill_between(
            levels, levels - twice, levels + twice, **shade({"color": GREY})
        )
        name = "observed" if label is None else label
        ax.plot(levels, self.curve.observed, label=name, **{**_POINTS, **line})
        ax.set(xlabel="level of the interval", ylabel="observed inside")
