"""What paper 001 says of CO2, and what our numbers say."""

from collections.abc import Iterator

import numpy as np

from caveat.papers.page import Claim, claim, flow, verdict
from caveat.papers.series.models import (
    ERF_KERNEL,
    RELU_4,
    RELU_5,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
    TANH_5,
)
from caveat.papers.series.points import FEW_DRAWS, Curve, Curves

TANH_LOW, TANH_HIGH = TANH_5, "tanh 5 layers drop 0.2"
FAR = 10.0  # times x*: where tanh units are saturated
GROWS = 3.0  # sd at x* over that on the data, from which it counts as grown
SATURATED = 1.5  # sd at 10 x* over that at x*, up to which it is bounded
ALIKE = 1.1  # ratio of sds up to which two nets are the same in it
REASONABLE = 0.5  # error of an sd, relative, up to which it is of use
_NEAR_ZERO = 0.5


def growth(curve: Curve) -> float:
    """The sd at x* over the mean sd on the data."""
    return curve.part("x*").sd / curve.part("train").sd


def beyond(curve: Curve) -> float:
    """The sd far beyond x* over that at x*."""
    return curve.part("far").sd / curve.part("x*").sd


def value(curve: Curve) -> float:
    """What is predicted at x*."""
    return float(curve.part("x*").column("mean")[0])


def claims(curves: Curves) -> Iterator[Claim]:
    """All of them, in the order of the paper."""
    for say in (_standard, _process, _relu, _tanh, _rates, _depth, _few, _truth):
        yield say(curves)


def _standard(curves: Curves) -> Claim:
    curve = curves.standard(RELU_5)
    bare = np.isnan(curve.column("sd")).all()
    truth = float(curve.part("x*").column("y")[0])
    return claim(
        """The standard dropout NN model (fig. 2a) predicts value 0 for point x* with
        high confidence, even though it is clearly not a sensible prediction.""",
        f"""A number with no doubt attached: {verdict(bare)}; it is {value(curve):+.2f},
        and {truth:+.2f} was measured. That it is 0 (within {_NEAR_ZERO:g}):
        {verdict(abs(value(curve)) < _NEAR_ZERO)}.""",
    )


def _process(curves: Curves) -> Claim:
    grown = growth(curves.process(SQUARED_EXPONENTIAL))
    return claim(
        "The GP model represents this by increasing its predictive uncertainty.",
        f"""Its sd at x* is {grown:.1f} times that on the data (at least {GROWS:g}):
        {verdict(grown >= GROWS)}.""",
    )


def _relu(curves: Curves) -> Claim:
    curve, limit = curves.mc(RELU_5), curves.process(RELU_KERNEL)
    grown = growth(curve) >= GROWS and beyond(curve) > SATURATED
    return claim(
        "the uncertainty is increasing far from the data for the ReLU model",
        f"""At x* the sd is {growth(curve):.1f} times that on the data (at least
        {GROWS:g}), and at {FAR:g} x* it is {beyond(curve):.1f} times that at x*:
        {verdict(grown)}. The GP with the kernel of such nets: {growth(limit):.1f} and
        {beyond(limit):.1f} times.""",
    )


def _tanh(curves: Curves) -> Claim:
    limit = curves.process(ERF_KERNEL)
    both = [curves.mc(model) for model in (TANH_LOW, TANH_HIGH)]
    bounded = all(beyond(curve) <= SATURATED for curve in both)
    return claim(
        "whereas for the TanH model it stays bounded",
        f"""From x* to {FAR:g} x* the sd is multiplied by
        {", ".join(f"{beyond(curve):.2f}" for curve in both)} (drop 0.1, 0.2; at most
        {SATURATED:g}): {verdict(bounded)}. At x* it is
        {", ".join(f"{growth(curve):.2f}" for curve in both)} times that on the data.
        The GP with the kernel of an erf net: {growth(limit):.1f} and
        {beyond(limit):.2f} times.""",
    )


def _rates(curves: Curves) -> Claim:
    before, after = (
        _everywhere(get(TANH_HIGH)).sd / _everywhere(get(TANH_LOW)).sd
        for get in (curves.untrained, curves.mc)
    )
    alike = 1.0 / ALIKE <= after <= ALIKE
    return claim(
        """Models initialised with dropout probability 0.1 initially exhibit smaller
        uncertainty than the ones initialised with dropout probability 0.2, but towards
        the end of the optimisation when the model has converged the uncertainty is
        almost undistinguishable.""",
        f"""Over all months the sd with 0.2 is {before:.2f} times that with 0.1 before
        training, so smaller with 0.1: {verdict(before > 1.0)}. At the end of ours it is
        {after:.2f} times; alike (within a factor of {ALIKE:g}): {verdict(alike)}. The
        released files give the two different rates and decays.""",
    )


def _depth(curves: Curves) -> Claim:
    deep, flat = (_everywhere(curves.mc(model)) for model in (RELU_5, RELU_4))
    gap = float(np.sqrt(np.square(deep.column("mean") - flat.column("mean")).mean()))
    ratio = flat.sd / deep.sd
    same = gap < deep.sd and 1.0 / ALIKE <= ratio <= ALIKE
    return claim(
        """Not plotted are the models with 4 layers as these converge to the same
        results.""",
        f"""The means of 4 and 5 layers differ by {gap:.2f} (root mean square over all
        months; the sd of 5 layers is {deep.sd:.2f}), and the sd of 4 layers is
        {ratio:.2f} times that of 5. The same, that is closer than one sd and within a
        factor of {ALIKE:g}: {verdict(same)}.""",
    )


def _few(curves: Curves) -> Claim:
    many = _everywhere(curves.mc(RELU_5))
    few = _everywhere(curves.mc(RELU_5, FEW_DRAWS))
    gap = np.abs(few.column("mean") - many.column("mean")) / many.column("sd")
    off = np.abs(few.column("sd") / many.column("sd") - 1.0)
    enough = gap.mean() < 1.0 and off.mean() < REASONABLE
    return claim(
        """A much smaller numbers can be used to get a reasonable estimation to the
        predictive mean and uncertainty (see fig. 3 for example with T = 10).""",
        f"""With T = {FEW_DRAWS} the mean is {gap.mean():.2f} sd and the sd
        {off.mean():.0%} off that with T = {curves.n_draws}, on average; reasonable,
        that is less than one sd and {REASONABLE:.0%}: {verdict(enough)}.""",
    )


def _truth(curves: Curves) -> Claim:
    later = {
        "MC dropout ReLU": curves.mc(RELU_5).part("later"),
        "MC dropout tanh": curves.mc(TANH_LOW).part("later"),
        "GP squared exponential": curves.process(SQUARED_EXPONENTIAL).part("later"),
        "GP ReLU": curves.process(RELU_KERNEL).part("later"),
    }
    shares = "; ".join(
        f"{name} {c.coverage(noise=False):.0%}, {c.coverage(noise=True):.0%} with noise"
        for name, c in later.items()
    )
    honest = later["MC dropout ReLU"].coverage(noise=False) >= 0.9
    return claim(
        """in total, predictive mean plus/minus 2 standard deviations are shown,
        representing 95% confidence""",
        f"""Of the later months within 2 sd: {shares}. At least 90% for the ReLU net, as
        drawn: {verdict(honest)}. What a model does not follow of the training months is
        in its noise.""",
    )


def differences(curves: Curves) -> str:
    """What our shorter training leaves."""
    known = curves.mc(RELU_5).part("train")
    share = 1.0 - (known.error / float(known.column("y").std())) ** 2
    process = curves.process(SQUARED_EXPONENTIAL).part("train")
    return flow(f"""After {known.n_steps:,} iterations, not a million, the ReLU net
        explains {share:.0%} of the variance of the training months (RMSE
        {known.error:.2f}; the GP with a squared exponential {process.error:.2f}). What
        it leaves is the season, which counts as noise. So the sds here are those of
        nets early in their training. Batches take the months in their order, as Caffe
        reads a file that is not shuffled.""")


def _everywhere(curve: Curve) -> Curve:
    return curve.part("train", "later")
