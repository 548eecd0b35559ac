"""Figure 1: the function and its softmax, on the first of the data sets."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.softmax.functions import (
    DROPOUT,
    EDGE,
    PROCESS,
    STAR,
    Array,
    Point,
    labelled,
)
from caveat.papers.style import name_axes, panels, shades

_NAMES = {DROPOUT: "MC dropout", PROCESS: "GP with the kernel of such nets"}


def draw(points: Sequence[Point]) -> Figure:
    """Both models on data set 0."""
    figure, grid = panels(2, 2, height=4.4, sharex=True)
    x, y = labelled(0)
    for (left, right), model in zip(grid, (DROPOUT, PROCESS), strict=True):
        own = [p for p in points if (p.model, p.data_set) == (model, 0)]
        _function(left, own)
        _softmax(right, own)
        right.plot(x, y, "|", color="0.35", markersize=5, label="labels")
        name_axes(left, _NAMES[model], y="softmax input f(x)")
        name_axes(right, _NAMES[model], y="softmax output, class 1")
    grid[0, 0].legend(loc="upper left")
    handles, names = grid[0, 1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower right", ncols=2)
    for axes in grid[-1]:
        axes.set_xlabel("x")
    for axes in grid.ravel().tolist():
        for edge in (-EDGE, EDGE):
            axes.axvline(edge, color="0.5", linestyle="--", linewidth=0.8)
        axes.axvline(STAR, color="black", linestyle=":", linewidth=1.0)
    return figure


def _function(axes: Axes, own: Sequence[Point]) -> None:
    x, function, mean, sd = _columns(own, "x", "function", "mean", "sd")
    shades(axes, x, mean, sd)
    axes.plot(x, function, color="black", label="point estimate")
    axes.axhline(0.0, color="0.6", linewidth=0.6)


def _softmax(axes: Axes, own: Sequence[Point]) -> None:
    names = ("x", "other_point", "other_mean", "other_low", "other_high")
    x, point, mean, low, high = _columns(own, *names)
    axes.fill_between(x, 1 - high, 1 - low, color="0.85", linewidth=0, label="95%")
    axes.plot(x, 1 - point, color="black", label="of the point estimate")
    axes.plot(x, 1 - mean, color="0.35", linestyle="--", label="mean over functions")


def _columns(own: Sequence[Point], *names: str) -> tuple[Array, ...]:
    return tuple(np.array([getattr(p, name) for p in own]) for name in names)
