"""Where displays draw, in which colours, and what they all do alike."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Self

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's colours, which the colour-blind can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (6, 1)), (0, (1, 1)), (0, (3, 1)))
HATCHES = (
    "",
    "///",
    "...",
    "xxx",
    "\\\\\\",
    "ooo",
    "+++",
)  # colours, when printed in grey
MARKERS = ("o", "s", "^", "D", "v", "P", "X")  # the same for points
SHADES = "cividis"  # from dark to light, in grey and for the colour-blind as well
BLUE = COLOURS[0]
GREY = "#636363"
SHADE = 0.2  # of what a curve may be off by chance


@dataclass(eq=False)
class Display(ABC):
    """A figure: ``from_…`` computes what is drawn, ``plot`` draws and returns itself.

    Attributes
    ----------
    ax_, figure_
        Where it was drawn last; set by ``plot``.
    """

    ax_: Axes = field(init=False, repr=False)
    figure_: Figure | SubFigure = field(init=False, repr=False)

    @abstractmethod
    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw it on the given axes, or in a new figure; returns itself."""

    def _open(self, ax: Axes | None) -> Axes:
        """The given axes, or those of a new figure; remembered."""
        if ax is None:
            # pyplot takes long to import and looks for a screen; most need neither.
            _, ax = import_module("matplotlib.pyplot").subplots(layout="constrained")
        assert ax is not None
        self.ax_, self.figure_ = ax, ax.figure
        return ax


@dataclass(eq=False)
class LineDisplay(Display):
    """A display of one line with a shade or bars of the same colour."""

    def plot(
        self,
        ax: Axes | None = None,
        *,
        color: str = BLUE,
        label: str | None = None,
        **line: Any,
    ) -> Self:
        """Draw it.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        color : str
            Of the line and, lighter, of what is around it.
        label : str or None
            For the legend; by default what the line is, with its summary.
        **line
            Passed to ``Axes.plot``, or ``Axes.errorbar``.

        Returns
        -------
        Display
            Itself, with ``ax_`` and ``figure_``.
        """
        self._draw(self._open(ax), label, {"color": color, **line})
        return self

    @abstractmethod
    def _draw(self, ax: Axes, label: str | None, line: dict[str, Any]) -> None:
        """Draw on ``ax`` and name its axes; ``line`` holds a colour."""


def shade(line: dict[str, Any], opacity: float = SHADE) -> dict[str, Any]:
    """The style of the shade around a line."""
    return {"color": line["color"], "alpha": opacity, "linewidth": 0}


def diagonal(ax: Axes, end: float = 1.0) -> None:
    """A thin grey line from 0 to 1, ``end`` high: what is right, or mere chance."""
    ax.plot([0, 1], [0, end], color=GREY, linewidth=1, zorder=1)
