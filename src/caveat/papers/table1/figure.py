"""The figure of Table 1: one panel per set, a dot with its error per method."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.table1.comparison import METRICS, OPPONENTS, Row, Value, rows
from caveat.papers.table1.records import Record


def draw(records: Sequence[Record], path: Path) -> None:
    """Write the figure.

    Parameters
    ----------
    records : sequence of Record
        Of one protocol.
    path : Path
        Of the PNG file.
    """
    table = rows(records)
    sets = list(dict.fromkeys(row.dataset for row in table))
    figure = Figure(figsize=(3.0 * len(METRICS) + 1.5, 1.9 * len(sets)), dpi=130)
    axes = figure.subplots(len(sets), len(METRICS), squeeze=False)
    for place, name in enumerate(sets):
        own = [row for row in table if row.dataset == name]
        for panel, metric in zip(axes[place], METRICS, strict=True):
            _panel(panel, own, metric)
        axes[place, 0].set_title(name, loc="left", fontsize=9, fontweight="bold")
        axes[place, 1].set_yticklabels([])
    for panel, metric in zip(axes[-1], METRICS, strict=True):
        better = "lower" if metric == "rmse" else "higher"
        panel.set_xlabel(f"{METRICS[metric]} ({better} is better)", fontsize=8)
    figure.tight_layout()
    figure.savefig(path)


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
            markersize=5,
            linewidth=1,
            capsize=2,
        )
    panel.set_yticks(heights, [name for name, _, _ in entries], fontsize=7)
    panel.tick_params(axis="x", labelsize=7)
    panel.set_ylim(-0.6, len(entries) - 0.4)
    panel.grid(axis="x", color="0.9")
    panel.set_axisbelow(True)
