"""Figure 2: test error against the prior precision, a panel per category."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.reviews.report import Panel, by_category, label
from caveat.papers.reviews.runs import METHODS, VERSIONS, Record
from caveat.papers.style import ink, panels

_INK = {"plain": 1, "dropout_10": 3, "dropout_50": 0, "dropout_90": 2}
_SHIFT = 1.06  # between the error bars of neighbouring methods
_TOP = 40.0


def draw(records: Sequence[Record]) -> Figure:
    """A row per version; bars are standard deviations over splits."""
    rows = [by_category(records, version) for version in VERSIONS]
    figure, grid = panels(len(rows), len(rows[0]), height=4.2, sharex=True, sharey=True)
    for line, own in zip(grid, rows, strict=True):
        for axes, panel in zip(line, own, strict=True):
            _panel(axes, panel)
        line[0].set_ylabel(f"{own[0].version}\ntest error, %")
    for axes, panel in zip(grid[0], rows[0], strict=True):
        axes.set_title(panel.category)
    for axes in grid[-1]:
        axes.set_xlabel("prior precision λ0")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    for place, method in enumerate(METHODS):
        curve = panel.curve(method)
        axes.errorbar(
            curve.precisions * _SHIFT**place,
            100 * curve.mean,
            yerr=100 * curve.deviation,
            label=label(method),
            elinewidth=0.7,
            **ink(_INK[method]),
        )
    axes.set_xscale("log")
    axes.set_ylim(5.0, _TOP)
