"""The look of all figures: colours that everybody can tell apart, and lines without."""

from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

if TYPE_CHECKING:
    from contextlib import _GeneratorContextManager

WIDTH = 5.4  # inches; letters of 8 points stay legible when printed at 3.4
HALF_SDS = (0.5, 1.0, 1.5, 2.0)  # the shades of paper 001, figs 2 and 3

# Okabe and Ito's colours, which the colour-blind can tell apart; no yellow on white.
COLOURS = {
    "black": "#000000",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
}
_INK: tuple[dict[str, Any], ...] = tuple(
    {
        "color": COLOURS[name],
        "linestyle": dashes,
        "marker": mark,
        "markerfacecolor": COLOURS.get(fill, fill),
    }
    for name, dashes, mark, fill in (
        ("blue", "-", "o", "blue"),
        ("vermilion", "--", "s", "white"),
        ("black", ":", "^", "white"),
        ("green", "-.", "D", "green"),
        ("purple", (0, (6, 1)), "x", "purple"),
        ("orange", (0, (4, 1, 1, 1, 1, 1)), "v", "white"),
        ("sky", (0, (1, 1)), "P", "sky"),
    )
)
_STYLE: Any = {
    "font.size": 8.0,
    "axes.titlesize": 8.5,
    "axes.labelsize": 8.0,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "0.92",
    "image.cmap": "gray_r",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def house_style() -> "_GeneratorContextManager[None]":
    """The settings of matplotlib in which a figure is drawn.

    Returns
    -------
    context manager
        Also a decorator: write ``@house_style()`` above the function that draws.
    """
    return matplotlib.rc_context(_STYLE)


def panels(
    rows: int = 1, columns: int = 1, *, height: float, **subplots: Any
) -> tuple[Figure, NDArray[np.object_]]:
    """A figure of the house's width with a grid of axes.

    Parameters
    ----------
    rows, columns : int
        Of the grid.
    height : float
        Of the figure, in inches.
    **subplots
        As for ``Figure.subplots``.

    Returns
    -------
    figure : Figure
    grid : array of Axes, shape (rows, columns)
    """
    figure = Figure(figsize=(WIDTH, height), dpi=200, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **subplots)


def ink(k: int) -> dict[str, Any]:
    """Line, colour and marker of the k-th curve of a panel."""
    return dict(_INK[k % len(_INK)])


def line(k: int) -> dict[str, Any]:
    """As :func:`ink`, for dense curves: no markers."""
    return {name: ink(k)[name] for name in ("color", "linestyle")}


def shades(
    axes: Axes,
    x: NDArray[np.float64],
    mean: NDArray[np.float64],
    sd: NDArray[np.float64],
    *,
    color: str = COLOURS["blue"],
) -> None:
    """Shades of half a standard deviation around a mean, up to two of them."""
    for half in HALF_SDS:
        low, high = mean - half * sd, mean + half * sd
        axes.fill_between(x, low, high, color=color, alpha=0.16, linewidth=0)


def name_axes(axes: Axes, title: str, x: str = "", y: str = "") -> None:
    """Title and labels, those that are not empty."""
    axes.set_title(title)
    if x:
        axes.set_xlabel(x)
    if y:
        axes.set_ylabel(y)


def name_outer(grid: NDArray[np.object_], x: str = "", y: str = "") -> None:
    """Labels below the last row and beside the first column, if not empty."""
    for axes in grid[-1] if x else ():
        axes.set_xlabel(x)
    for axes in grid[:, 0] if y else ():
        axes.set_ylabel(y)


def legend_below(figure: Figure, axes: Axes, *, ncols: int) -> None:
    """One legend for all panels, below them, with what is drawn in one of them."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=ncols)
