"""Error and log-likelihood against the cost of testing and of training."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.ensemble.comparison import LONG, MC, SHORT, STANDARD, Result
from caveat.papers.ensemble.report import passes, select
from caveat.papers.style import house_style, ink, line, name_axes, panels

_SCORES = (("error", 100.0, "test error, %"), ("log_likelihood", 1.0, "mean log p"))


def draw(results: Sequence[Result]) -> Figure:
    """The figure.

    Parameters
    ----------
    results : sequence of Result
        Of which those on test images are drawn.

    Returns
    -------
    Figure
    """
    with house_style():
        figure, grid = panels(1, 2, height=2.9)
        for axes, (name, scale, label) in zip(grid[0], _SCORES, strict=True):
            for k, method in enumerate((MC, LONG, SHORT)):
                _curve(axes, results, method, (name, scale, k))
            level = scale * np.mean([getattr(r, name) for r in _standard(results)])
            axes.axhline(float(level), label="dropout, averaged weights", **line(3))
            _passes_below(axes, passes(results, MC))
            name_axes(axes, "", "passes through a network per image", label)
        handles, names = grid[0, 0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2)
        return figure


def _curve(
    axes: Axes, results: Sequence[Result], method: str, look: tuple[str, float, int]
) -> None:
    name, scale, k = look
    grid = passes(results, method)
    table = np.array(
        [[scale * getattr(r, name) for r in select(results, method, n)] for n in grid]
    )
    bars = table.std(1, ddof=1) / np.sqrt(table.shape[1])
    names = {
        MC: "MC dropout (training: 1)",
        LONG: "ensemble of n (training: n)",
        SHORT: "ensemble of n short trainings (n/5)",
    }
    axes.errorbar(
        grid, table.mean(1), yerr=bars, label=names[method], capsize=2, **ink(k)
    )


def _standard(results: Sequence[Result]) -> list[Result]:
    return select(results, STANDARD, 1)


def _passes_below(axes: Axes, grid: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(grid, [str(n) for n in grid])
    axes.minorticks_off()
