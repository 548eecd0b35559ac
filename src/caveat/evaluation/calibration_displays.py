"""Figures of calibration: whether probabilities and intervals keep their word."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from caveat.evaluation.axes import COLOURS, GREY, SHADE, axes_of
from caveat.evaluation.intervals import LEVELS, CoverageCurve
from caveat.evaluation.reliability import UNIFORM, ReliabilityCurve
from caveat.evaluation.targets import Regression
from caveat.predictive import CategoricalPredictive

BLUE = COLOURS[0]


@dataclass(eq=False)
class ReliabilityDisplay:
    """Accuracy against confidence; right probabilities lie on the diagonal.

    Bars are two standard errors of a bin whose confidence is right.

    Attributes
    ----------
    curve : ReliabilityCurve
        What is drawn.
    ax_, figure_
        Where it was drawn last; set by ``plot``.

    Examples
    --------
    >>> import torch
    >>> logits = torch.randn(9, 50, 3, generator=torch.Generator().manual_seed(0))
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> display = ReliabilityDisplay.from_predictive(predictive, predictive.label)
    >>> display.ax_.get_xlabel()
    'confidence'
    """

    curve: ReliabilityCurve
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @classmethod
    def from_predictive(
        cls,
        predictive: CategoricalPredictive,
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

    def plot(
        self,
        ax: Axes | None = None,
        *,
        color: str = BLUE,
        label: str | None = None,
        **line: Any,
    ) -> Self:
        """Draw a point per bin.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        color : str
            Of the points.
        label : str or None
            For the legend; by default the calibration error.
        **line
            Passed to ``Axes.errorbar``.

        Returns
        -------
        ReliabilityDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        self.ax_, self.figure_ = axes_of(ax)
        curve = self.curve
        _diagonal(self.ax_)
        name = f"ECE {curve.ece}" if label is None else label
        style: dict[str, Any] = {"marker": "o", "markersize": 4, "capsize": 2, **line}
        self.ax_.errorbar(
            curve.confidence,
            curve.accuracy,
            yerr=2.0 * curve.accuracy_error,
            color=color,
            label=name,
            **style,
        )
        self.ax_.set(xlabel="confidence", ylabel="accuracy")
        return self


@dataclass(eq=False)
class CoverageDisplay:
    """Share of observations inside intervals, against what the intervals say.

    The shade is two standard errors of right intervals.

    Attributes
    ----------
    curve : CoverageCurve
        What is drawn.
    ax_, figure_
        Where it was drawn last; set by ``plot``.

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
    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @classmethod
    def from_predictive(
        cls,
        predictive: Regression,
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

    def plot(
        self,
        ax: Axes | None = None,
        *,
        color: str = BLUE,
        label: str | None = "observed",
        **line: Any,
    ) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        color : str
            Of the line.
        label : str or None
            For the legend.
        **line
            Passed to ``Axes.plot``.

        Returns
        -------
        CoverageDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        self.ax_, self.figure_ = axes_of(ax)
        curve, twice = self.curve, 2.0 * self.curve.error
        _diagonal(self.ax_)
        self.ax_.fill_between(
            curve.levels,
            curve.levels - twice,
            curve.levels + twice,
            color=GREY,
            alpha=SHADE,
            linewidth=0,
        )
        style: dict[str, Any] = {"marker": "o", "markersize": 4, **line}
        self.ax_.plot(curve.levels, curve.observed, color=color, label=label, **style)
        self.ax_.set(xlabel="level of the interval", ylabel="observed inside")
        return self


def _diagonal(ax: Axes) -> None:
    ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, zorder=1)
