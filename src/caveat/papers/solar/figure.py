"""The gaps and what fills them: a panel per model."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from caveat.data import SolarData
from caveat.papers.series.jobs import ERF_KERNEL, RELU_KERNEL, SQUARED_EXPONENTIAL
from caveat.papers.series.panels import Observed, draw_curve
from caveat.papers.series.points import MC, PROCESS, STANDARD, Curve, Point
from caveat.papers.solar.models import RELU_5, TANH_5
from caveat.papers.style import house_style, panels


def draw(points: Sequence[Point], data: SolarData, n_draws: int) -> Figure:
    """The figure.

    Parameters
    ----------
    points : sequence of Point
        Of all models.
    data : SolarData
        What was observed.
    n_draws : int
        Of MC dropout.

    Returns
    -------
    Figure
    """
    with house_style():
        return _drawn(points, data, n_draws)


def _drawn(points: Sequence[Point], data: SolarData, n_draws: int) -> Figure:
    content = [
        ("Standard dropout, ReLU", Curve.of(points, RELU_5, STANDARD)),
        ("GP, squared exponential", Curve.of(points, SQUARED_EXPONENTIAL, PROCESS)),
        (f"MC dropout, ReLU, T = {n_draws}", _mc(points, RELU_5, n_draws)),
        (f"MC dropout, tanh, T = {n_draws}", _mc(points, TANH_5, n_draws)),
        ("GP, kernel of the ReLU net", Curve.of(points, RELU_KERNEL, PROCESS)),
        ("GP, kernel of an erf net", Curve.of(points, ERF_KERNEL, PROCESS)),
    ]
    observed = Observed(data.train.x, data.train.y, data.test.x, data.test.y)
    figure, grid = panels(3, 2, height=5.8, sharex=True, sharey=True)
    for axes, (title, curve) in zip(grid.ravel().tolist(), content, strict=True):
        for gap in data.gaps:
            axes.axvspan(gap.x_first, gap.x_last, color="0.93", linewidth=0, zorder=0)
        draw_curve(axes, curve, observed, title=title)
        axes.grid(visible=False)
    grid[0, 0].legend(loc="lower right")
    grid[0, 0].set_ylim(-3.6, 3.6)
    for axes in grid[-1]:
        axes.set_xlabel("year, standardised")
    for axes in grid[:, 0]:
        axes.set_ylabel("irradiance, standardised")
    return figure


def _mc(points: Sequence[Point], model: str, n_draws: int) -> Curve:
    return Curve.of(points, model, MC, n_draws=n_draws)
