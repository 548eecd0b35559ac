"""Figure 2: test error against the prior precision, a panel per category."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.reviews.report import Panel, panels
from caveat.papers.reviews.runs import METHODS, VERSIONS, Record

_STYLES: dict[str, dict[str, Any]] = {
    "plain": {"linestyle": "--", "marker": "o", "color": "black"},
    "dropout_10": {"linestyle": "-", "marker": "^", "color": "0.65"},
    "dropout_50": {"linestyle": "-", "marker": "s", "color": "black"},
    "dropout_90": {"linestyle": ":", "marker": "v", "color": "0.35"},
}
_FILLED = "dropout_50"
_SHIFT = 1.06  # between the error bars of neighbouring methods
_TOP = 40.0


def draw(records: Sequence[Record]) -> Figure:
    """The figure.

    Parameters
    ----------
    records : sequence of Record
        Of all splits.

    Returns
    -------
    Figure
    """
    rows = [panels(records, version) for version in VERSIONS]
    figure = Figure(figsize=(1.9 * len(rows[0]) + 0.6, 5.2), dpi=150)
    grid = figure.subplots(
        len(rows), len(rows[0]), sharex=True, sharey=True, squeeze=False
    )
    for line, own in zip(grid, rows, strict=True):
        for axes, panel in zip(line, own, strict=True):
            _panel(axes, panel)
        line[0].set_ylabel(f"{own[0].version}\ntest error, %", fontsize=8)
    for axes, panel in zip(grid[0], rows[0], strict=True):
        axes.set_title(panel.category, fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("prior precision λ0", fontsize=8)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, names, loc="lower center", ncols=len(names), fontsize=8, frameon=False
    )
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    for place, (method, style) in enumerate(_STYLES.items()):
        curve = panel.curve(method)
        rate = METHODS[method]
        axes.errorbar(
            curve.precisions * _SHIFT**place,
            100 * curve.mean,
            yerr=100 * curve.deviation,
            label=f"dropout, f = {rate:g}" if rate else "no dropout",
            linewidth=1,
            markersize=3.5,
            markerfacecolor=style["color"] if method == _FILLED else "white",
            elinewidth=0.7,
            **style,
        )
    axes.set_xscale("log")
    axes.set_ylim(5.0, _TOP)
    axes.grid(color="0.92")
    axes.tick_params(labelsize=7.5)
