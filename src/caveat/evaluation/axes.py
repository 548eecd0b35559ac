"""Where displays draw: on the axes they are given, or in a figure of their own."""

from importlib import import_module

from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

BLUE = "#1f4fd8"
GREY = "#636363"
SHADE = 0.2  # of what a curve may be off by chance
# Okabe and Ito's colours, which the colour-blind can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")


def axes_of(ax: Axes | None) -> tuple[Axes, Figure | SubFigure]:
    """The given axes, or those of a new figure; and the figure they are in."""
    if ax is None:
        # pyplot takes long to import and looks for a screen; most need neither.
        _, ax = import_module("matplotlib.pyplot").subplots(layout="constrained")
    assert ax is not None
    return ax, ax.figure
