"""Panels of a series: what was observed, the mean and shades of half a deviation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from caveat.evaluation.axes import BLUE
from caveat.papers.series.points import Array, Curve
from caveat.papers.style import name_axes, panels, shades

RED = "#d62728"  # data, as in the paper; the prediction is blue
HEIGHT = 6.0  # inches


@dataclass(frozen=True, eq=False)
class Observed:
    """A series as it is drawn: what was learnt from, and what was not."""

    x: Array
    y: Array
    x_unseen: Array
    y_unseen: Array


def draw_panels(
    content: Sequence[tuple[str, Curve]],
    observed: Observed,
    *,
    limits: tuple[float, float],
    wide: Mapping[str, float] | None = None,
) -> tuple[Figure, NDArray[np.object_]]:
    """A panel per model, two in a row; ``content`` has titles and curves.

    Shades reach to 2 sds, or as far as ``wide`` says for a title.
    """
    rows = len(content) // 2
    figure, grid = panels(rows, 2, height=HEIGHT, sharex=True, sharey=True)
    for axes, (title, curve) in zip(grid.ravel().tolist(), content, strict=True):
        _draw(axes, curve, observed, (wide or {}).get(title, 2.0))
        name_axes(axes, title)
    grid[0, 0].set_ylim(*limits)
    return figure, grid


def _draw(axes: Axes, curve: Curve, observed: Observed, n_sd: float) -> None:
    x, mean, sd = (curve.column(name) for name in ("x", "mean", "sd"))
    seen = _with_breaks(observed.x, observed.y)
    unseen = _with_breaks(observed.x_unseen, observed.y_unseen)
    axes.plot(*seen, color=RED, linewidth=0.6, label="observed")
    dots: dict[str, Any] = {"color": RED, "linewidth": 0.7, "linestyle": (0, (1, 1))}
    axes.plot(*unseen, label="observed, not used", **dots)
    if not np.isnan(sd).all():
        shades(axes, x, mean, sd * n_sd / 2.0, color=BLUE)
    axes.plot(x, mean, color=BLUE, linewidth=0.9, label="predicted")


def _with_breaks(x: Array, y: Array) -> tuple[Array, Array]:
    """The line is broken where points are missing."""
    step = np.diff(x)
    breaks = np.flatnonzero(step > 2.0 * np.median(step)) + 1
    return np.insert(x, breaks, np.nan), np.insert(y, breaks, np.nan)
