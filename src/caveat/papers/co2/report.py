"""The page of figures 2 and 3: our numbers beside the paper's words."""

from collections.abc import Iterator, Sequence

import numpy as np

from caveat.data import CO2Data
from caveat.papers.co2.models import (
    FAR,
    RELU_4,
    RELU_5,
    TANH_HIGH,
    TANH_LOW,
    nets,
)
from caveat.papers.output import markdown_table
from caveat.papers.series.jobs import (
    ERF_KERNEL,
    FEW_DRAWS,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
    Effort,
)
from caveat.papers.series.points import MC, PROCESS, STANDARD, Curve, Point
from caveat.papers.series.words import claim, settings_table, training, verdict

GROWS = 3.0  # sd at x* over that on the data, from which it counts as grown
SATURATED = 1.5  # sd at 10 x* over that at x*, up to which it is bounded
ALIKE = 1.1  # ratio of sds up to which two nets are the same in it
REASONABLE = 0.5  # error of an sd, relative, up to which it is of use
_NEAR_ZERO = 0.5
_TITLE = "Figures 2 and 3 of paper 001: CO2 extrapolated"
_READING = f"""x and y are as in the paper: months counted and standardised, ppm less
the line through the training months, in their standard deviations. x* is the last place
of the released test grid, "far" is {FAR:g} x*. The sd is that of the function, as drawn
in the paper; a prediction with noise adds the noise variance 1/τ that is best for the
bound on the training months (of a GP, that of the marginal likelihood). The paper did
not have the later months; here they are compared with, nothing was chosen by them. A GP
has hyper-parameters by marginal likelihood. "ReLU net" and "erf net" are the covariance
functions of such nets of infinite width with Gaussian weights and no dropout; erf
stands for tanh, since its kernel has a closed form."""


class Curves:
    """The curves of all models by name."""

    def __init__(self, points: Sequence[Point], n_draws: int) -> None:
        self._points, self.n_draws = points, n_draws

    def mc(self, model: str, n_draws: int | None = None) -> Curve:
        """MC dropout with many draws, or so many."""
        return Curve.of(self._points, model, MC, n_draws=n_draws or self.n_draws)

    def first(self, model: str) -> Curve:
        """MC dropout before training."""
        count = self.n_draws // 10
        return Curve.of(self._points, model, MC, n_draws=count, untrained=True)

    def standard(self, model: str) -> Curve:
        """Standard dropout."""
        return Curve.of(self._points, model, STANDARD)

    def process(self, name: str) -> Curve:
        """A Gaussian process."""
        return Curve.of(self._points, name, PROCESS)


def growth(curve: Curve) -> float:
    """The sd at x* over the mean sd on the data."""
    return curve.part("x*").sd / curve.part("train").sd


def beyond(curve: Curve) -> float:
    """The sd far beyond x* over that at x*."""
    return curve.part("far").sd / curve.part("x*").sd


def value(curve: Curve) -> float:
    """What is predicted at x*."""
    return float(curve.part("x*").column("mean")[0])


def render(points: Sequence[Point], data: CO2Data, effort: Effort) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    points : sequence of Point
        Of all models.
    data : CO2Data
        What they were trained on.
    effort : Effort
        That of the run.

    Yields
    ------
    str
        The title, then Markdown.
    """
    curves = Curves(points, effort.n_draws)
    yield _TITLE
    yield f"Data: {data.source}; {len(data.train)} months to learn from."
    yield training(nets(effort))
    yield settings_table(nets(effort))
    yield _READING
    yield "## Numbers"
    yield _table(curves)
    yield "## The paper's claims"
    for say in (_standard, _process, _relu, _tanh, _rates, _depth, _few, _truth):
        yield say(curves)
    yield "## What differs from the paper"
    yield _differences(curves)


def _table(curves: Curves) -> str:
    head = ["model", "sd, data", "sd, x*", "x*/data", "far/x*", "mean at x*"]
    head += ["RMSE, data", "RMSE, later", "later within 2 sd", "with noise"]
    rows = [_without_sd(f"{RELU_5}, standard", curves.standard(RELU_5))]
    for model in (RELU_5, RELU_4, TANH_LOW, TANH_HIGH):
        rows.append(_row(f"{model}, T = {curves.n_draws}", curves.mc(model)))
    rows.append(_row(f"{RELU_5}, T = {FEW_DRAWS}", curves.mc(RELU_5, FEW_DRAWS)))
    for name in (SQUARED_EXPONENTIAL, RELU_KERNEL, ERF_KERNEL):
        rows.append(_row(f"GP, {name}", curves.process(name)))
    return markdown_table(head, rows)


def _without_sd(name: str, curve: Curve) -> list[str]:
    return [name, *["none"] * 4, *_errors(curve), "-", "-"]


def _row(name: str, curve: Curve) -> list[str]:
    later = curve.part("later")
    return [
        name,
        f"{curve.part('train').sd:.3f}",
        f"{curve.part('x*').sd:.3f}",
        f"{growth(curve):.2f}",
        f"{beyond(curve):.2f}",
        *_errors(curve),
        f"{later.coverage(noise=False):.0%}",
        f"{later.coverage(noise=True):.0%}",
    ]


def _errors(curve: Curve) -> list[str]:
    train, later = (curve.part(name).error for name in ("train", "later"))
    return [f"{value(curve):+.2f}", f"{train:.2f}", f"{later:.2f}"]


def _standard(curves: Curves) -> str:
    curve = curves.standard(RELU_5)
    bare = bool(np.isnan(curve.column("sd")).all())
    truth = float(curve.part("x*").column("y")[0])
    return claim(
        "The standard dropout NN model (fig. 2a) predicts value 0 for point x* with "
        "high confidence, even though it is clearly not a sensible prediction.",
        f"A number with no doubt attached: {verdict(bare)}; it is {value(curve):+.2f}, "
        f"and {truth:+.2f} was measured. That it is 0 (within {_NEAR_ZERO:g}): "
        f"{verdict(abs(value(curve)) < _NEAR_ZERO)}.",
    )


def _process(curves: Curves) -> str:
    curve = curves.process(SQUARED_EXPONENTIAL)
    return claim(
        "The GP model represents this by increasing its predictive uncertainty.",
        f"Its sd at x* is {growth(curve):.1f} times that on the data (at least "
        f"{GROWS:g}): {verdict(growth(curve) >= GROWS)}.",
    )


def _relu(curves: Curves) -> str:
    curve, limit = curves.mc(RELU_5), curves.process(RELU_KERNEL)
    grown = growth(curve) >= GROWS and beyond(curve) > SATURATED
    return claim(
        "the uncertainty is increasing far from the data for the ReLU model",
        f"At x* the sd is {growth(curve):.1f} times that on the data (at least "
        f"{GROWS:g}), and at {FAR:g} x* it is {beyond(curve):.1f} times that at x*: "
        f"{verdict(grown)}. The GP with the kernel of such nets: {growth(limit):.1f} "
        f"and {beyond(limit):.1f} times.",
    )


def _tanh(curves: Curves) -> str:
    limit = curves.process(ERF_KERNEL)
    both = [curves.mc(model) for model in (TANH_LOW, TANH_HIGH)]
    bounded = all(beyond(curve) <= SATURATED for curve in both)
    ratios = ", ".join(f"{beyond(curve):.2f}" for curve in both)
    grown = ", ".join(f"{growth(curve):.2f}" for curve in both)
    return claim(
        "whereas for the TanH model it stays bounded",
        f"From x* to {FAR:g} x* the sd is multiplied by {ratios} (drop 0.1, 0.2; at "
        f"most {SATURATED:g}): {verdict(bounded)}. At x* it is {grown} times that on "
        f"the data. The GP with the kernel of an erf net: {growth(limit):.1f} and "
        f"{beyond(limit):.2f} times.",
    )


def _rates(curves: Curves) -> str:
    first, last = (
        [get(model).part("train", "later").sd for model in (TANH_LOW, TANH_HIGH)]
        for get in (curves.first, curves.mc)
    )
    before, after = first[1] / first[0], last[1] / last[0]
    alike = 1.0 / ALIKE <= after <= ALIKE
    return claim(
        "Models initialised with dropout probability 0.1 initially exhibit smaller "
        "uncertainty than the ones initialised with dropout probability 0.2, but "
        "towards the end of the optimisation when the model has converged the "
        "uncertainty is almost undistinguishable.",
        f"Over all months the sd with 0.2 is {before:.2f} times that with 0.1 before "
        f"training, so smaller with 0.1: {verdict(before > 1.0)}. At the end of ours "
        f"it is {after:.2f} times; alike (within a factor of {ALIKE:g}): "
        f"{verdict(alike)}. The released files give the two different rates and "
        "decays.",
    )


def _depth(curves: Curves) -> str:
    deep, flat = (curves.mc(model).part("train", "later") for model in (RELU_5, RELU_4))
    gap = float(np.sqrt(np.square(deep.column("mean") - flat.column("mean")).mean()))
    ratio = flat.sd / deep.sd
    same = gap < deep.sd and 1.0 / ALIKE <= ratio <= ALIKE
    return claim(
        "Not plotted are the models with 4 layers as these converge to the same "
        "results.",
        f"The means of 4 and 5 layers differ by {gap:.2f} (root mean square over all "
        f"months; the sd of 5 layers is {deep.sd:.2f}), and the sd of 4 layers is "
        f"{ratio:.2f} times that of 5. The same, that is closer than one sd and within "
        f"a factor of {ALIKE:g}: {verdict(same)}.",
    )


def _few(curves: Curves) -> str:
    many, few = (
        curves.mc(RELU_5, count).part("train", "later")
        for count in (curves.n_draws, FEW_DRAWS)
    )
    gap = np.abs(few.column("mean") - many.column("mean")) / many.column("sd")
    off = np.abs(few.column("sd") / many.column("sd") - 1.0)
    enough = bool(gap.mean() < 1.0 and off.mean() < REASONABLE)
    return claim(
        "A much smaller numbers can be used to get a reasonable estimation to the "
        "predictive mean and uncertainty (see fig. 3 for example with T = 10).",
        f"With T = {FEW_DRAWS} the mean is {gap.mean():.2f} sd and the sd "
        f"{off.mean():.0%} off that with T = {curves.n_draws}, on average; reasonable, "
        f"that is less than one sd and {REASONABLE:.0%}: {verdict(enough)}.",
    )


def _truth(curves: Curves) -> str:
    later = {
        name: curve.part("later")
        for name, curve in (
            ("MC dropout ReLU", curves.mc(RELU_5)),
            ("MC dropout tanh", curves.mc(TANH_LOW)),
            ("GP squared exponential", curves.process(SQUARED_EXPONENTIAL)),
            ("GP ReLU", curves.process(RELU_KERNEL)),
        )
    }
    shares = "; ".join(
        f"{name} {curve.coverage(noise=False):.0%}, {curve.coverage(noise=True):.0%} "
        "with noise"
        for name, curve in later.items()
    )
    honest = later["MC dropout ReLU"].coverage(noise=False) >= 0.9
    return claim(
        "in total, predictive mean plus/minus 2 standard deviations are shown, "
        "representing 95% confidence",
        f"Of the later months within 2 sd: {shares}. At least 90% for the ReLU net, "
        f"as drawn: {verdict(honest)}. What a model does not follow of the training "
        "months is in its noise.",
    )


def _differences(curves: Curves) -> str:
    known = curves.mc(RELU_5).part("train")
    share = 1.0 - (known.error / float(known.column("y").std())) ** 2
    process = curves.process(SQUARED_EXPONENTIAL).part("train")
    return (
        f"After {known.n_steps:,} iterations, not a million, the ReLU net explains "
        f"{share:.0%} of the variance of the training months (RMSE {known.error:.2f}; "
        f"the GP with a squared exponential {process.error:.2f}). What it leaves is "
        "the season, which counts as noise. So the sds here are those of nets early in "
        "their training. Batches take the months in their order, as Caffe reads a file "
        "that is not shuffled."
    )
