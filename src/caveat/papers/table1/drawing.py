"""Table 1 as a figure: a panel per set with an axis of its own, all of one metric."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from caveat.papers.style import COLOURS, panels
from caveat.papers.table1.comparison import METRICS, OPPONENTS, Row, SplitMean

_COLUMNS = 3
_HEIGHT = 1.88  # inches of a row of panels
_FAR = 0.8  # a value is cut off if it is so many spans of the others beyond them
_OURS, _DROPOUT, _OTHER = COLOURS["blue"], COLOURS["vermilion"], COLOURS["black"]
_COLOUR_OF = {"VI": _OTHER, "PBP": _OTHER, "Deep Ensembles": COLOURS["purple"]}


class Entry(NamedTuple):
    """A line of a panel."""

    name: str
    value: SplitMean
    is_ours: bool


class Range(NamedTuple):
    """What an axis shows."""

    low: float
    high: float


def metric_figure(rows: Sequence[Row], metric: str) -> Figure:
    """All sets of one protocol and one metric; ours are filled.

    Parameters
    ----------
    rows : sequence of Row
        Of one protocol.
    metric : str
        A key of ``METRICS``.

    Returns
    -------
    Figure
        At most 1,200 pixels high.
    """
    sets = list(dict.fromkeys(row.dataset for row in rows))
    columns = min(_COLUMNS, len(sets))
    lines = -(-len(sets) // columns)
    figure, grid = panels(lines, columns, height=_HEIGHT * lines + 0.3)
    names = slots(rows, metric)
    for place, axes in enumerate(grid.ravel().tolist()):
        if place >= len(sets):
            axes.set_axis_off()
            continue
        own = entries([row for row in rows if row.dataset == sets[place]], metric)
        _panel(axes, own, metric, names)
        axes.set_title(sets[place], loc="left", fontweight="bold")
        if place % columns:
            axes.set_yticklabels([])
    better = "lower" if metric == "rmse" else "higher"
    figure.supxlabel(
        f"{METRICS[metric]} ({better} is better), ± standard error; "
        "arrows: beyond the axis",
        fontsize=8,
    )
    return figure


def entries(own: Sequence[Row], metric: str) -> list[Entry]:
    """What is shown of a set: our variants, then the published rows."""
    published = own[0].published
    return [Entry(f"ours, {row.variant}", row.ours[metric], True) for row in own] + [
        Entry(name, published[name][metric], False)
        for name in OPPONENTS
        if metric in published.get(name, {})
    ]


def slots(rows: Sequence[Row], metric: str) -> list[str]:
    """The lines of every panel, from the top: those of all sets, ours first."""
    sets = dict.fromkeys(row.dataset for row in rows)
    every = [
        entry
        for name in sets
        for entry in entries([row for row in rows if row.dataset == name], metric)
    ]
    ours = dict.fromkeys(entry.name for entry in every if entry.is_ours)
    there = {entry.name for entry in every}
    return [*ours, *(name for name in OPPONENTS if name in there)]


def shown_range(own: Sequence[Entry], metric: str) -> Range:
    """From the least to the largest value with its error, far ones left out.

    Only values on the worse side are, never ours, and no RMSE is below 0.
    """
    sign = 1.0 if metric == "rmse" else -1.0
    kept = sorted(own, key=lambda entry: sign * entry.value.mean)
    while len(kept) > 2 and not kept[-1].is_ours:
        rest = [sign * entry.value.mean for entry in kept[:-1]]
        gap = sign * kept[-1].value.mean - rest[-1]
        if gap <= _FAR * (rest[-1] - rest[0]):
            break
        kept.pop()
    ends = [_ends(entry.value, metric) for entry in kept]
    low, high = min(end.low for end in ends), max(end.high for end in ends)
    margin = 0.06 * (high - low) or 1.0
    return Range(low - margin, high + margin)


def _ends(value: SplitMean, metric: str) -> Range:
    error = 0.0 if np.isnan(value.error) else value.error
    low = value.mean - error
    return Range(max(low, 0.0) if metric == "rmse" else low, value.mean + error)


def _panel(axes: Axes, own: Sequence[Entry], metric: str, names: Sequence[str]) -> None:
    shown = shown_range(own, metric)
    heights = np.arange(len(names))[::-1]
    for height in heights[::2].tolist():  # stripes lead the eye to the names
        axes.axhspan(height - 0.5, height + 0.5, color="0.95", linewidth=0, zorder=0)
    for entry in own:
        height = float(heights[names.index(entry.name)])
        if shown.low <= entry.value.mean <= shown.high:
            _bar(axes, height, entry, metric)
        else:
            _arrow(axes, height, entry, shown)
    axes.set_xlim(*shown)
    axes.set_ylim(-0.5, len(names) - 0.5)
    axes.set_yticks(heights, names)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=3, prune="both"))
    axes.grid(visible=False, axis="y")


def _colour(entry: Entry) -> str:
    return _OURS if entry.is_ours else _COLOUR_OF.get(entry.name, _DROPOUT)


def _bar(axes: Axes, height: float, entry: Entry, metric: str) -> None:
    ends, mean = _ends(entry.value, metric), entry.value.mean
    axes.errorbar(
        mean,
        height,
        xerr=[[mean - ends.low], [ends.high - mean]],
        fmt="o" if entry.is_ours else "s",
        color=_colour(entry),
        markerfacecolor=_colour(entry) if entry.is_ours else "white",
        markersize=3.5,
        linewidth=1.2,
        capsize=0,
    )


def _arrow(axes: Axes, height: float, entry: Entry, shown: Range) -> None:
    """At the end of the axis, with the value that lies beyond it."""
    to_the_right = entry.value.mean > shown.high
    inwards = 0.03 * (shown.high - shown.low)
    end = shown.high - inwards if to_the_right else shown.low + inwards
    marker = ">" if to_the_right else "<"
    axes.plot(end, height, marker=marker, markersize=4, color=_colour(entry))
    axes.annotate(
        f"{entry.value.mean:.2f}",
        (end, height),
        xytext=(-6 if to_the_right else 6, 0),
        textcoords="offset points",
        ha="right" if to_the_right else "left",
        va="center",
        fontsize=6.5,
        color=_colour(entry),
    )
