"""Figures 2 and 3 of paper 001: CO2 at Mauna Loa, extrapolated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.data import CO2Data, load_co2
from caveat.papers.page import Claim, Part, claim, flow, verdict
from caveat.papers.series.experiment import Series, SeriesEffort, fair
from caveat.papers.series.fitted import FITTED, FittedNet
from caveat.papers.series.models import (
    ERF_KERNEL,
    KERNELS,
    RELU_4,
    RELU_5,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
    TANH_5,
    SeriesTask,
)
from caveat.papers.series.nets import Net
from caveat.papers.series.panels import Observed, draw_panels
from caveat.papers.series.points import FEW_DRAWS, Curve, Curves, Places, Point
from caveat.papers.style import legend_below, name_outer

TANH_LOW, TANH_HIGH = TANH_5, "tanh 5 layers drop 0.2"
FIT_RELU, FIT_FLAT = RELU_5 + FITTED, RELU_4 + FITTED
FIT_LOW, FIT_HIGH = TANH_LOW + FITTED, TANH_HIGH + FITTED
FAR = 10.0  # times x*: where tanh units are saturated
GROWS = 3.0  # sd at x* over that on the data, from which it counts as grown
SHOWN = 2.0  # sds of the function, drawn in the paper
SATURATED = 1.5  # sd at 10 x* over that at x*, up to which it is bounded
ALIKE = 1.1  # ratio of sds up to which two nets are the same in it
REASONABLE = 0.5  # error of an sd, relative, up to which it is of use
_NEAR_ZERO = 0.5
SETTLED = 4  # drawn months: about a year
FLAT = 0.1  # share of the ups and downs up to which a mean is without a season


def growth(curve: Curve) -> float:
    """The sd at x* over the mean sd on the data."""
    return curve.part("x*").sd / curve.part("train").sd


def beyond(curve: Curve) -> float:
    """The sd far beyond x* over that at x*."""
    return curve.part("far").sd / curve.part("x*").sd


def value(curve: Curve) -> float:
    """What is predicted at x*."""
    return float(curve.part("x*").column("mean")[0])


def missed(curve: Curve) -> float:
    """How far what was measured at x* is from the mean, in sds of the function."""
    star = curve.part("x*")
    return float(abs(star.column("y")[0] - star.column("mean")[0])) / star.sd


def claims(curves: Curves) -> Iterator[Claim]:
    """All of them, in the order of the paper."""
    for say in (
        _season,
        _standard,
        _process,
        _captured,
        _relu,
        _tanh,
        _rates,
        _depth,
        _few,
        _truth,
    ):
        yield say(curves)


def swing(curve: Curve) -> float:
    """How much of the observed ups and downs after training the mean has.

    Without the first months, in which a mean comes back from the last season.
    """
    later = curve.part("later")
    ours, observed = (
        np.diff(later.column(name)[SETTLED:]).std() for name in ("mean", "y")
    )
    return float(ours / observed)


def _season(curves: Curves) -> Claim:
    models = {
        "MC dropout, ReLU": curves.mc(FIT_RELU),
        "MC dropout, tanh": curves.mc(FIT_LOW),
        "GP": curves.process(SQUARED_EXPONENTIAL),
    }
    found = {name: swing(curve) for name, curve in models.items()}
    shown = ", ".join(f"{name} {share:.0%}" for name, share in found.items())
    with fair(*models.values()):
        return claim(
            """Extrapolating the observed data, none of the models can capture the
            periodicity""",
            f"""Of the ups and downs from one later month drawn to the next (their
            standard deviation) the predicted means have: {shown}; the first {SETTLED}
            are left out, in which a mean comes back from the last season. At most
            {FLAT:.0%}: {verdict(max(found.values()) <= FLAT)}.""",
        )


def _standard(curves: Curves) -> Claim:
    curve = curves.standard(FIT_RELU)
    bare = np.isnan(curve.column("sd")).all()
    truth = float(curve.part("x*").column("y")[0])
    with fair(curve):
        return claim(
            """The standard dropout NN model (fig. 2a) predicts value 0 for point x*
            with high confidence, even though it is clearly not a sensible
            prediction.""",
            f"""A number with no doubt attached: {verdict(bare)}; it is
            {value(curve):+.2f}, and {truth:+.2f} was measured. That it is 0 (within
            {_NEAR_ZERO:g}): {verdict(abs(value(curve)) < _NEAR_ZERO)}.""",
        )


def _process(curves: Curves) -> Claim:
    grown = growth(curves.process(SQUARED_EXPONENTIAL))
    with fair(curves.process(SQUARED_EXPONENTIAL)):
        return claim(
            "The GP model represents this by increasing its predictive uncertainty.",
            f"""Its sd at x* is {grown:.1f} times that on the data (at least {GROWS:g}):
            {verdict(grown >= GROWS)}.""",
        )


def _captured(curves: Curves) -> Claim:
    models = {"ReLU": curves.mc(FIT_RELU), "tanh": curves.mc(FIT_LOW)}
    grown = "; ".join(
        f"{name} {growth(curve):.1f} times, {verdict(growth(curve) >= GROWS)}"
        for name, curve in models.items()
    )
    inside = "; ".join(
        f"{name} {missed(curve):.1f} sd off, {verdict(missed(curve) <= SHOWN)}"
        for name, curve in models.items()
    )
    with fair(*models.values()):
        return claim(
            """This behaviour is captured in MC dropout as well. Even though the models
            in figures 2 have an incorrect predictive mean, the increased standard
            deviation expresses the models' uncertainty about the point.""",
            f"""The sd at x* is at least {GROWS:g} times that on the data, as for the
            GP: {grown}. What was measured there lies within the {SHOWN:g} sd that are
            drawn: {inside}.""",
        )


def _relu(curves: Curves) -> Claim:
    curve, limit = curves.mc(FIT_RELU), curves.process(RELU_KERNEL)
    with fair(curve):
        return claim(
            "the uncertainty is increasing far from the data for the ReLU model",
            f"""At x* the sd is {growth(curve):.1f} times that on the data; at least
            {GROWS:g}: {verdict(growth(curve) >= GROWS)}. At {FAR:g} x* it is
            {beyond(curve):.1f} times that at x*; more than {SATURATED:g}:
            {verdict(beyond(curve) > SATURATED)}. The GP with the kernel of such nets:
            {growth(limit):.1f} and {beyond(limit):.1f} times.""",
        )


def _tanh(curves: Curves) -> Claim:
    limit = curves.process(ERF_KERNEL)
    both = {"drop 0.1": curves.mc(FIT_LOW), "drop 0.2": curves.mc(FIT_HIGH)}
    return claim(
        "whereas for the TanH model it stays bounded",
        f"""From x* to {FAR:g} x* the sd is multiplied by at most {SATURATED:g}:
        {"; ".join(f"{name} {_bounded(curve)}" for name, curve in both.items())}. At x*
        it is {", ".join(f"{growth(curve):.2f}" for curve in both.values())} times that
        on the data. The GP with the kernel of an erf net: {growth(limit):.1f} and
        {beyond(limit):.2f} times.""",
    )


def _bounded(curve: Curve) -> str:
    with fair(curve):
        found = verdict(beyond(curve) <= SATURATED)
    error = curve.part("train").error
    return f"{found} ({beyond(curve):.2f} times; RMSE on the data {error:.2f})"


def _rates(curves: Curves) -> Claim:
    before, after = (
        _everywhere(get(FIT_HIGH)).sd / _everywhere(get(FIT_LOW)).sd
        for get in (curves.untrained, curves.mc)
    )
    alike = 1.0 / ALIKE <= after <= ALIKE
    with fair(curves.mc(FIT_LOW), curves.mc(FIT_HIGH)):
        return claim(
            """Models initialised with dropout probability 0.1 initially exhibit smaller
            uncertainty than the ones initialised with dropout probability 0.2, but
            towards the end of the optimisation when the model has converged the
            uncertainty is almost undistinguishable.""",
            f"""Over all months the sd with 0.2 is {before:.2f} times that with 0.1
            before training, so smaller with 0.1: {verdict(before > 1.0)}. At the end of
            ours it is {after:.2f} times; alike (within a factor of {ALIKE:g}):
            {verdict(alike)}. Ours differ in the drop rate only.""",
        )


def _depth(curves: Curves) -> Claim:
    deep, flat = (_everywhere(curves.mc(model)) for model in (FIT_RELU, FIT_FLAT))
    gap = float(np.sqrt(np.square(deep.column("mean") - flat.column("mean")).mean()))
    ratio = flat.sd / deep.sd
    same = gap < deep.sd and 1.0 / ALIKE <= ratio <= ALIKE
    with fair(curves.mc(FIT_RELU), curves.mc(FIT_FLAT)):
        return claim(
            """Not plotted are the models with 4 layers as these converge to the same
            results.""",
            f"""The means of 4 and 5 layers differ by {gap:.2f} (root mean square over
            all months; the sd of 5 layers is {deep.sd:.2f}), and the sd of 4 layers is
            {ratio:.2f} times that of 5. The same, that is closer than one sd and
            within a factor of {ALIKE:g}: {verdict(same)}.""",
        )


def _few(curves: Curves) -> Claim:
    many = _everywhere(curves.mc(FIT_RELU))
    few = _everywhere(curves.mc(FIT_RELU, FEW_DRAWS))
    gap = np.abs(few.column("mean") - many.column("mean")) / many.column("sd")
    off = np.abs(few.column("sd") / many.column("sd") - 1.0)
    enough = gap.mean() < 1.0 and off.mean() < REASONABLE
    with fair(curves.mc(FIT_RELU)):
        return claim(
            """A much smaller numbers can be used to get a reasonable estimation to the
            predictive mean and uncertainty (see fig. 3 for example with T = 10).""",
            f"""With T = {FEW_DRAWS} the mean is {gap.mean():.2f} sd and the sd
            {off.mean():.0%} off that with T = {curves.n_draws}, on average; reasonable,
            that is less than one sd and {REASONABLE:.0%}: {verdict(enough)}.""",
        )


def _truth(curves: Curves) -> Claim:
    later = {
        "MC dropout ReLU": curves.mc(FIT_RELU).part("later"),
        "MC dropout tanh": curves.mc(FIT_LOW).part("later"),
        "GP squared exponential": curves.process(SQUARED_EXPONENTIAL).part("later"),
        "GP ReLU": curves.process(RELU_KERNEL).part("later"),
    }
    shares = "; ".join(
        f"{name} {c.coverage(noise=False):.0%}, {c.coverage(noise=True):.0%} with noise"
        for name, c in later.items()
    )
    honest = later["MC dropout ReLU"].coverage(noise=False) >= 0.9
    with fair(curves.mc(FIT_RELU)):
        return claim(
            """in total, predictive mean plus/minus 2 standard deviations are shown,
            representing 95% confidence""",
            f"""Of the later months within 2 sd: {shares}. At least 90% for the ReLU
            net, as drawn: {verdict(honest)}. What a model does not follow of the
            training months is in its noise.""",
        )


def differences(curves: Curves) -> str:
    """What fits and what does not."""
    known, short = (curves.mc(n).part("train") for n in (FIT_RELU, RELU_5))
    process = curves.process(SQUARED_EXPONENTIAL).part("train")
    return flow(f"""The fitted ReLU net has RMSE {known.error:.2f} on the training
        months after {known.n_steps:,} steps of Adam (the GP with a squared exponential
        {process.error:.2f}), with dropout 0.1 on every hidden layer. As released, after
        {short.n_steps:,} iterations instead of a million, it has {short.error:.2f}: the
        season is left, and counts as noise. So no claim is judged by it; its panels and
        numbers are there for comparison. There batches take the months in their order,
        as Caffe reads a file that is not shuffled. Whether the paper's own nets, after
        a million iterations from zero biases, have the sds of ours is not known.""")


def _everywhere(curve: Curve) -> Curve:
    return curve.part("train", "later")


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
    full = SeriesEffort(width=1024, n_steps=1000, n_draws=1000, every=3, n_restarts=2)
    asked_before = (TANH_LOW, TANH_HIGH, TANH_LOW + FITTED, TANH_HIGH + FITTED)

    @property
    def nets(self) -> tuple[Net, ...]:
        size = self.effort.size | {"batch_size": 200}
        return (
            Net(RELU_5, "relu", 4, 0.1, 1e-2, weight_decay=1e-6, **size),
            Net(TANH_LOW, "tanh", 4, 0.1, 5e-3, weight_decay=5e-7, **size),
            Net(TANH_HIGH, "tanh", 4, 0.2, 1e-2, weight_decay=0.0, **size),
            Net(
                RELU_4,
                "relu",
                3,
                0.1,
                1e-2,
                weight_decay=1e-6,
                gamma=1e-5,
                power=0.1,
                **size,
            ),
        )

    @property
    def fitted(self) -> tuple[FittedNet, ...]:
        return (
            self.relu(RELU_5, 4, 2000),
            self.tanh(TANH_LOW, 0.1, 6000, rate=6e-4),
            self.tanh(TANH_HIGH, 0.2, 6000, rate=6e-4),
            self.relu(RELU_4, 3, 2000),
        )

    @property
    def task(self) -> SeriesTask:
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
        return SeriesTask(data.train.x, data.train.y, places)

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
        released = (RELU_5, RELU_4, TANH_LOW, TANH_HIGH)
        fitted = (FIT_RELU, FIT_FLAT, FIT_LOW, FIT_HIGH)
        named = curves.named((*fitted, *released), KERNELS)
        yield self.numbers(curves, named)
        yield "## The paper's claims"
        yield from claims(curves)
        yield "## What differs from the paper"
        yield differences(curves)

    def in_brief(self, records: Sequence[Point]) -> tuple[str, str]:
        curves = self.curves(records)
        relu, tanh = curves.mc(FIT_RELU), curves.mc(FIT_LOW)
        bare = curves.standard(FIT_RELU)
        truth = float(bare.part("x*").column("y")[0])
        paper = """far from the data MC dropout's uncertainty grows with ReLU units and
            stays bounded with tanh, while standard dropout is sure of a wrong value"""
        ours = f"""with nets that fit the data, the sd at x* is {growth(relu):.1f} times
            that on the data for ReLU and {growth(tanh):.1f} times for tanh, and at
            {FAR:g} x* {beyond(relu):.0f} and {beyond(tanh):.1f} times that at x*;
            standard dropout says {value(bare):+.1f} where {truth:+.1f} was measured"""
        return paper, ours

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
        figure, grid = draw_panels(content, observed, limits=(-4.0, 6.5), wide=wide)
        for axes in grid.ravel().tolist():
            axes.axvline(end, color="black", linestyle="--", linewidth=0.8)
            axes.axvline(star, color="black", linestyle=":", linewidth=1.0)
            axes.annotate("x*", (star, 5.4), xytext=(-9, 0), textcoords="offset points")
        _in_units(grid[0, 0], data)
        name_outer(grid, "year", "ppm")
        legend_below(figure, grid[0, 0], ncols=3)
        return figure


def _content(curves: Curves) -> dict[str, Curve]:
    n_steps, wide = curves.mc(RELU_5).n_steps, f"({_WIDE:g} sd)"
    released = f"as released, {n_steps:,} iterations"
    return {
        "2a. Standard dropout, ReLU, fitted": curves.standard(FIT_RELU),
        "2b. GP, squared exponential": curves.process(SQUARED_EXPONENTIAL),
        f"2c. MC dropout, ReLU, fitted, T = {curves.n_draws}": curves.mc(FIT_RELU),
        f"2d. MC dropout, tanh, fitted {wide}": curves.mc(FIT_LOW),
        f"3. MC dropout, ReLU, fitted, T = {FEW_DRAWS}": curves.mc(FIT_RELU, FEW_DRAWS),
        f"MC dropout, tanh, drop 0.2, fitted {wide}": curves.mc(FIT_HIGH),
        f"ReLU, {released}": curves.mc(RELU_5),
        f"tanh, {released} {wide}": curves.mc(TANH_LOW),
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
    sd = data.transform.residual_std
    axes.set_yticks([ppm / sd for ppm in _PPM], [f"{ppm:g}" for ppm in _PPM])
