"""The page of figure 1: how sure the softmax is, with and without uncertainty."""

from collections.abc import Iterator, Sequence

import numpy as np

from caveat.papers.page import Claim, Part, bullets, claim, flow, table, verdict
from caveat.papers.softmax.functions import (
    DROP_RATE,
    DROPOUT,
    EDGE,
    EPOCHS,
    HIDDEN,
    LENGTHSCALE,
    N_ROWS,
    PROCESS,
    STAR,
    Array,
    Point,
)

SURE = 0.001  # probability of the other class, up to which one is "1"
DOUBT = 0.05  # from which the other class is not ruled out


class Places:
    """The points of a model, by where they are."""

    def __init__(self, points: Sequence[Point], model: str) -> None:
        self._own = [p for p in points if p.model == model]

    def star(self, name: str) -> Array:
        """An attribute at x*, one number per data set."""
        return np.array([getattr(p, name) for p in self._own if p.x == STAR])

    def inside(self, name: str) -> Array:
        """An attribute where there are data, for all data sets."""
        return np.array([getattr(p, name) for p in self._own if abs(p.x) <= EDGE])

    @property
    def ratios(self) -> Array:
        """Mean over sd of f at x*, for each data set."""
        return np.abs(self.star("mean")) / self.star("sd")


def render(points: Sequence[Point], n_draws: int) -> Iterator[Part]:
    """The parts of the page."""
    models = {name: Places(points, name) for name in (DROPOUT, PROCESS)}
    n_sets = len(models[DROPOUT].star("x"))
    yield flow(f"""The paper's figure is a sketch; here it is computed. {n_sets} data
        sets of {N_ROWS} labels with x in [-{EDGE:g}, {EDGE:g}], drawn with log odds
        4 sin(2.5 (x - 1.4)). MC dropout: nets of {" and ".join(map(str, HIDDEN))} ReLU
        units, {DROP_RATE:g} of each layer dropped, l = {LENGTHSCALE:g}, {EPOCHS:,}
        epochs of Adam, T = {n_draws}; the point estimate is standard dropout. GP: the
        covariance function of such nets of infinite width, scales by marginal
        likelihood, Laplace's approximation; the point estimate is the mean of f. The
        figure shows the first data set: f with shades of half an sd up to two, and
        P(class 1).""")
    yield f"## At x* = {STAR:g}, median over the data sets"
    yield table(_row(name, own) for name, own in models.items())
    yield "## The paper's claims"
    yield _point_estimate(models)
    yield _distribution(models)


def _row(name: str, own: Places) -> dict[str, str]:
    change = np.abs(own.inside("other_mean") - own.inside("other_point"))
    return {
        "model": name,
        "f, point estimate": f"{np.median(own.star('function')):+.1f}",
        "sd of f": f"{np.median(own.star('sd')):.1f}",
        "mean/sd of f": f"{np.median(own.ratios):.1f}",
        "P(class 0), point estimate": f"{np.median(own.star('other_point')):.1e}",
        "P(class 0), mean": f"{np.median(own.star('other_mean')):.4f}",
        "95% of functions up to": f"{np.median(own.star('other_high')):.4f}",
        "change of P where data are": f"{change.mean():.3f}",
    }


def _point_estimate(models: dict[str, Places]) -> Claim:
    shares = {
        name: float((own.star("other_point") <= SURE).mean())
        for name, own in models.items()
    }
    shown = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return claim(
        """Passing a point estimate of a function (solid line 1a) through a softmax
        (solid line 1b) results in extrapolations with unjustified high confidence for
        points far from the training data. x* for example would be classified as class
        1 with probability 1.""",
        f"""Class 1 with a probability of at least {1 - SURE:g} by the point estimate,
        of the data sets: {shown}. In most of them:
        {verdict(min(shares.values()) > 0.5)}.""",
    )


def _distribution(models: dict[str, Places]) -> Claim:
    first, second = (float(np.median(own.ratios)) for own in models.values())
    limit = flow(f"""With ReLU units both the mean and the sd of f grow in proportion to
        x, so their ratio tends to a limit far away, and with it the doubt. It is
        {first:.1f} for dropout and {second:.1f} for the GP: that dropout leaves less
        doubt than the GP whose kernel it has: {verdict(first > second)}.""")
    return Claim(
        "However, passing the distribution (shaded area 1a) through a softmax (shaded "
        "area 1b) better reflects classification uncertainty far from the training "
        "data.",
        bullets(_doubt(name, own) for name, own in models.items()) + "\n\n" + limit,
    )


def _doubt(name: str, own: Places) -> str:
    less = float((own.star("other_mean") > own.star("other_point")).mean())
    left = float(np.median(own.star("other_mean")))
    return f"""{name}: less sure of class 1 at x* than the point estimate in {less:.0%}
        of the data sets (at least 95%): {verdict(less >= 0.95)}. Class 0 keeps
        {left:.2%} (median), at least {DOUBT:.0%}: {verdict(left >= DOUBT)}."""
