"""Figures 2 and 3 with the truth: a panel per model."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.data import CO2Data
from caveat.papers.co2.models import RELU_5, TANH_HIGH, TANH_LOW
from caveat.papers.series.jobs import (
    ERF_KERNEL,
    FEW_DRAWS,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
)
from caveat.papers.series.panels import Observed, draw_curve
from caveat.papers.series.points import MC, PROCESS, STANDARD, Curve, Point
from caveat.papers.style import house_style, panels

_WIDE = 8.0  # deviations shown of tanh, as in the paper
_DRAWN = ("train", "later", "x*")
_FIRST_YEAR, _LAST_YEAR = 1960, 1990
_PPM = (-5.0, 0.0, 5.0, 10.0)


def draw(points: Sequence[Point], data: CO2Data, n_draws: int) -> Figure:
    """The figure.

    Parameters
    ----------
    points : sequence of Point
        Of all models.
    data : CO2Data
        What was observed.
    n_draws : int
        Those of the panels of MC dropout, but for that of fig. 3.

    Returns
    -------
    Figure
    """
    with house_style():
        return _drawn(points, data, n_draws)


def _drawn(points: Sequence[Point], data: CO2Data, n_draws: int) -> Figure:
    star = float(data.x_test[-1])
    later = data.future.x <= star
    observed = Observed(
        data.train.x, data.train.y, data.future.x[later], data.future.y[later]
    )
    figure, grid = panels(4, 2, height=7.6, sharex=True, sharey=True)
    for axes, (title, n_sd, curve) in zip(
        grid.ravel().tolist(), _content(points, n_draws), strict=True
    ):
        draw_curve(axes, curve.part(*_DRAWN), observed, title=title, n_sd=n_sd)
        _marks(axes, float(data.train.x[-1]), star)
    grid[0, 0].legend(loc="upper left")
    grid[0, 0].set_ylim(-4.0, 6.5)
    _in_units(grid[0, 0], data)
    for axes in grid[-1]:
        axes.set_xlabel("year")
    for axes in grid[:, 0]:
        axes.set_ylabel("ppm above the line")
    return figure


def _in_units(axes: Axes, data: CO2Data) -> None:
    """Ticks in years and ppm, for what is drawn in the paper's units."""
    months = np.concatenate([data.train.month, data.future.month])
    x = np.concatenate([data.train.x, data.future.x])
    years = np.arange(_FIRST_YEAR, _LAST_YEAR + 1, 10)
    starts = (years - 1970) * 12.0  # months since 1970, as datetime64 counts them
    places = np.interp(starts, months.astype(np.float64), x)
    axes.set_xticks(places, [str(year) for year in years])
    sd = data.transform.residual_sd
    axes.set_yticks([ppm / sd for ppm in _PPM], [f"{ppm:g}" for ppm in _PPM])


def _content(points: Sequence[Point], n_draws: int) -> list[tuple[str, float, Curve]]:
    def mc(model: str, count: int = n_draws) -> Curve:
        return Curve.of(points, model, MC, n_draws=count)

    def process(name: str) -> Curve:
        return Curve.of(points, name, PROCESS)

    two = 2.0
    return [
        ("2a. Standard dropout, ReLU", two, Curve.of(points, RELU_5, STANDARD)),
        ("2b. GP, squared exponential", two, process(SQUARED_EXPONENTIAL)),
        (f"2c. MC dropout, ReLU, T = {n_draws}", two, mc(RELU_5)),
        (f"2d. MC dropout, tanh, drop 0.1 ({_WIDE:g} sd)", _WIDE, mc(TANH_LOW)),
        (f"3. MC dropout, ReLU, T = {FEW_DRAWS}", two, mc(RELU_5, FEW_DRAWS)),
        (f"MC dropout, tanh, drop 0.2 ({_WIDE:g} sd)", _WIDE, mc(TANH_HIGH)),
        ("GP, kernel of the ReLU net", two, process(RELU_KERNEL)),
        ("GP, kernel of an erf net, like tanh", two, process(ERF_KERNEL)),
    ]


def _marks(axes: Axes, end: float, star: float) -> None:
    axes.axvline(end, color="black", linestyle="--", linewidth=0.8)
    axes.axvline(star, color="black", linestyle=":", linewidth=1.0)
    axes.annotate("x*", (star, 5.4), xytext=(-9, 0), textcoords="offset points")
