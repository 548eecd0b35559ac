"""Figures 2 and 3 of paper 001: CO2 at Mauna Loa, extrapolated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.data import CO2Data, load_co2
from caveat.papers.page import Part
from caveat.papers.series.co2_claims import (
    FAR,
    TANH_HIGH,
    TANH_LOW,
    beyond,
    claims,
    differences,
    growth,
    value,
)
from caveat.papers.series.experiment import Effort, Series
from caveat.papers.series.models import (
    ERF_KERNEL,
    KERNELS,
    RELU_4,
    RELU_5,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
    Task,
)
from caveat.papers.series.nets import Net
from caveat.papers.series.panels import Observed, draw_panels
from caveat.papers.series.points import FEW_DRAWS, Curve, Curves, Places, Point
from caveat.papers.style import name_outer

_READING = f"""x and y are as in the paper: months counted and standardised, ppm less
the line through the training months, in their standard deviations. x* is the last place
of the released test grid, "far" is {FAR:g} x*. The sd is that of the function, as drawn
in the paper; a prediction with noise adds the noise variance 1/τ that is best for the
bound on the training months (of a GP, that of the marginal likelihood). The paper did
not have the later months; here they are compared with, nothing was chosen by them. A GP
has hyper-parameters by marginal likelihood. "ReLU net" and "erf net" are the covariance
functions of such nets of infinite width with Gaussian weights and no dropout; erf
stands for tanh, since its kernel has a closed form."""
_WIDE = 8.0  # deviations shown of tanh, as in the paper
_YEARS = np.arange(1960, 1991, 10)
_PPM = (-5.0, 0.0, 5.0, 10.0)


@dataclass(frozen=True)
class CO2(Series):
    """The released nets, but for the number of steps; GPs; and the truth."""

    name = "co2"
    title = "Figures 2 and 3 of paper 001: CO2 extrapolated"
    full = Effort(width=1024, n_steps=1000, n_draws=1000, every=3, n_restarts=2)
    asked_before = (TANH_LOW, TANH_HIGH)

    @property
    def nets(self) -> tuple[Net, ...]:
        size = {
            "batch_size": 200,
            "n_steps": self.effort.n_steps,
            "width": self.effort.width,
        }
        return (
            Net(RELU_5, "relu", 4, 0.1, 1e-2, 1e-6, **size),
            Net(TANH_LOW, "tanh", 4, 0.1, 5e-3, 5e-7, **size),
            Net(TANH_HIGH, "tanh", 4, 0.2, 1e-2, 0.0, **size),
            Net(RELU_4, "relu", 3, 0.1, 1e-2, 1e-6, gamma=1e-5, power=0.1, **size),
        )

    @property
    def task(self) -> Task:
        """Training months, later months up to x*, x* itself and a place far beyond."""
        data, every = load_co2(), self.effort.every
        star = float(data.x_test[-1])
        later = data.future.x < star
        nearest = int(np.abs(data.future.x - star).argmin())
        places = Places.of(
            [
                ("train", data.train.x[::every], data.train.y[::every]),
                ("later", data.future.x[later][::every], data.future.y[later][::every]),
                ("x*", np.array([star]), data.future.y[nearest : nearest + 1]),
                ("far", np.array([FAR * star]), np.array([np.nan])),
            ]
        )
        return Task(data.train.x, data.train.y, places)

    def row(self, curve: Curve) -> dict[str, str]:
        train, later = curve.part("train"), curve.part("later")
        return {
            "sd, data": f"{train.sd:.3f}",
            "sd, x*": f"{curve.part('x*').sd:.3f}",
            "x*/data": f"{growth(curve):.2f}",
            "far/x*": f"{beyond(curve):.2f}",
            "mean at x*": f"{value(curve):+.2f}",
            "RMSE, data": f"{train.error:.2f}",
            "RMSE, later": f"{later.error:.2f}",
            "later within 2 sd": f"{later.coverage(noise=False):.0%}",
            "with noise": f"{later.coverage(noise=True):.0%}",
        }

    def page(self, records: Sequence[Point]) -> Iterator[Part]:
        curves, data = self.curves(records), load_co2()
        yield f"Data: {data.source}; {len(data.train)} months to learn from."
        yield from self.settings()
        yield _READING
        yield "## Numbers"
        named = curves.named((RELU_5, RELU_4, TANH_LOW, TANH_HIGH), KERNELS)
        yield self.numbers(curves, named)
        yield "## The paper's claims"
        yield from claims(curves)
        yield "## What differs from the paper"
        yield differences(curves)

    def figure(self, records: Sequence[Point]) -> Figure:
        """Figures 2 and 3 with the truth: a panel per model."""
        data = load_co2()
        star, end = float(data.x_test[-1]), float(data.train.x[-1])
        later = data.future.x <= star
        observed = Observed(
            data.train.x, data.train.y, data.future.x[later], data.future.y[later]
        )
        content = [
            (title, curve.part("train", "later", "x*"))
            for title, curve in _content(self.curves(records)).items()
        ]
        wide = {title: _WIDE for title, _ in content if f"({_WIDE:g} sd)" in title}
        figure, grid = draw_panels(
            content, observed, height=7.6, limits=(-4.0, 6.5), wide=wide
        )
        for axes in grid.ravel().tolist():
            axes.axvline(end, color="black", linestyle="--", linewidth=0.8)
            axes.axvline(star, color="black", linestyle=":", linewidth=1.0)
            axes.annotate("x*", (star, 5.4), xytext=(-9, 0), textcoords="offset points")
        grid[0, 0].legend(loc="upper left")
        _in_units(grid[0, 0], data)
        name_outer(grid, "year", "ppm above the line")
        return figure


def _content(curves: Curves) -> dict[str, Curve]:
    return {
        "2a. Standard dropout, ReLU": curves.standard(RELU_5),
        "2b. GP, squared exponential": curves.process(SQUARED_EXPONENTIAL),
        f"2c. MC dropout, ReLU, T = {curves.n_draws}": curves.mc(RELU_5),
        f"2d. MC dropout, tanh, drop 0.1 ({_WIDE:g} sd)": curves.mc(TANH_LOW),
        f"3. MC dropout, ReLU, T = {FEW_DRAWS}": curves.mc(RELU_5, FEW_DRAWS),
        f"MC dropout, tanh, drop 0.2 ({_WIDE:g} sd)": curves.mc(TANH_HIGH),
        "GP, kernel of the ReLU net": curves.process(RELU_KERNEL),
        "GP, kernel of an erf net, like tanh": curves.process(ERF_KERNEL),
    }


def _in_units(axes: Axes, data: CO2Data) -> None:
    """Ticks in years and ppm, for what is drawn in the paper's units."""
    months = np.concatenate([data.train.month, data.future.month])
    x = np.concatenate([data.train.x, data.future.x])
    starts = (_YEARS - 1970) * 12.0  # months since 1970, as datetime64 counts them
    places = np.interp(starts, months.astype(np.float64), x)
    axes.set_xticks(places, [str(year) for year in _YEARS])
    sd = data.transform.residual_sd
    axes.set_yticks([ppm / sd for ppm in _PPM], [f"{ppm:g}" for ppm in _PPM])
