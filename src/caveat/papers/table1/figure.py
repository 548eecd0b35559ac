"""The figure of Table 1: one panel per set, a dot with its error per method."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.style import panels
from caveat.papers.table1.comparison import METRICS, OPPONENTS, Row, Value, rows
from caveat.papers.table1.records import Record


def draw(records: Sequence[Record]) -> Figure:
    """A panel per set and metric; ours are filled."""
    table = rows(records)
    sets = list(dict.fromkeys(row.dataset for row in table))
    figure, grid = panels(len(sets), len(METRICS), height=1.6 * len(sets) + 0.3)
    for line, name in zip(grid, sets, strict=True):
        own = [row for row in table if row.dataset == name]
        for axes, metric in zip(line, METRICS, strict=True):
            _panel(axes, own, metric)
        line[0].set_title(name, loc="left", fontweight="bold")
        line[1].set_yticklabels([])
    for axes, metric in zip(grid[-1], METRICS, strict=True):
        better = "lower" if metric == "rmse" else "higher"
        axes.set_xlabel(f"{METRICS[metric]} ({better} is better)")
    return figure


def _panel(panel: Axes, own: Sequence[Row], metric: str) -> None:
    entries: list[tuple[str, Value, bool]] = [
        (f"ours, {row.variant}", row.ours[metric], True) for row in own
    ]
    published = own[0].published
    entries += [
        (name, published[name][metric], False)
        for name in OPPONENTS
        if metric in published.get(name, {})
    ]
    heights = np.arange(len(entries))[::-1]
    for height, (_, value, is_ours) in zip(heights, entries, strict=True):
        panel.errorbar(
            value.mean,
            height,
            xerr=value.error,
            fmt="o" if is_ours else "s",
            color="black",
            markerfacecolor="black" if is_ours else "white",
            linewidth=1,
            capsize=2,
        )
    panel.set_yticks(heights, [name for name, _, _ in entries])
    panel.set_ylim(-0.6, len(entries) - 0.4)
    panel.grid(visible=False, axis="y")
