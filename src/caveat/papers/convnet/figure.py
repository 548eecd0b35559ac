"""Test error and log-likelihood against the number of passes."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.convnet.report import mean_of, sizes
from caveat.papers.lenet import DROPOUT, STANDARD, Point
from caveat.papers.style import house_style, ink, line, name_axes, panels

_TITLES = {"end": "dropout at the end", "everywhere": "dropout everywhere"}


def draw(points: Sequence[Point]) -> Figure:
    """The figure.

    Parameters
    ----------
    points : sequence of Point
        Of all networks.

    Returns
    -------
    Figure
    """
    with house_style():
        figure, grid = panels(2, 2, height=4.2, sharex=True, sharey="row")
        for column, where in zip(grid.T, _TITLES, strict=True):
            _panel(column[0], points, where, "error", 100.0)
            _panel(column[1], points, where, "log_likelihood", 1.0)
            name_axes(column[0], _TITLES[where])
            name_axes(column[1], "", "passes, T")
        grid[0, 0].set_ylabel("test error, %")
        grid[1, 0].set_ylabel("mean log-likelihood")
        handles, names = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)
        return figure


def _panel(
    axes: Axes, points: Sequence[Point], where: str, name: str, scale: float
) -> None:
    grid = sizes(points, where)
    for value in _each(points, where, grid, name):
        axes.plot(grid, scale * value, color="0.8", linewidth=0.8)
    drawn = scale * _each(points, where, grid, name).mean(0)
    axes.plot(grid, drawn, label="MC dropout (thin: each network)", **ink(0))
    for k, other in ((1, where), (2, DROPOUT[0])):
        level = scale * mean_of(points, other, STANDARD, name)
        label = "no dropout" if other == DROPOUT[0] else "standard: averaged weights"
        axes.axhline(level, label=label, **line(k))
    axes.set_xscale("log")
    axes.set_xticks(grid, [str(size) for size in grid])
    axes.minorticks_off()


def _each(
    points: Sequence[Point], where: str, grid: Sequence[int], name: str
) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Shape (networks, sizes)."""
    table = [
        [getattr(p, name) for p in points if (p.dropout, p.n_draws) == (where, size)]
        for size in grid
    ]
    return np.array(table, dtype=np.float64).T
