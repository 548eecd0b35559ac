"""A panel of a series: what was observed, the mean and shades of half a deviation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from caveat.papers.series.points import Array, Curve
from caveat.papers.style import name_axes, shades


@dataclass(frozen=True, eq=False)
class Observed:
    """A series as it is drawn: what was learnt from, and what was not."""

    x: Array
    y: Array
    x_unseen: Array
    y_unseen: Array


def draw_curve(
    axes: Axes, curve: Curve, observed: Observed, *, title: str, n_sd: float = 2.0
) -> None:
    """Draw a model and the observations.

    Parameters
    ----------
    axes : Axes
        Empty.
    curve : Curve
        Mean and sd; an sd of NaN is no shade.
    observed : Observed
        The series.
    title : str
        Of the panel.
    n_sd : float
        Deviations from the mean to the edge of the outermost of four shades.
    """
    x, mean, sd = (curve.column(name) for name in ("x", "mean", "sd"))
    seen = _with_breaks(observed.x, observed.y)
    unseen = _with_breaks(observed.x_unseen, observed.y_unseen)
    axes.plot(*seen, color="0.5", linewidth=0.6, label="observed")
    dots: dict[str, Any] = {"color": "0.5", "linewidth": 0.7, "linestyle": (0, (1, 1))}
    axes.plot(*unseen, label="observed, not used", **dots)
    if not np.isnan(sd).all():
        shades(axes, x, mean, sd * n_sd / 2.0)
    axes.plot(x, mean, color="black", linewidth=1.0, label="predicted")
    name_axes(axes, title)


def _with_breaks(x: Array, y: Array) -> tuple[Array, Array]:
    """The line is broken where points are missing."""
    step = np.diff(x)
    breaks = np.flatnonzero(step > 2.0 * np.median(step)) + 1
    return np.insert(x, breaks, np.nan), np.insert(y, breaks, np.nan)
