"""The page of figure 1: how sure the softmax is, with and without uncertainty."""

from collections.abc import Iterator, Sequence

import numpy as np

from caveat.papers.output import markdown_table
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
_TITLE = "Figure 1 of paper 001: softmax input and output, computed"
_WORDS = (
    "Passing a point estimate of a function (solid line 1a) through a softmax (solid "
    "line 1b) results in extrapolations with unjustified high confidence for points "
    "far from the training data. x* for example would be classified as class 1 with "
    "probability 1.",
    "However, passing the distribution (shaded area 1a) through a softmax (shaded area "
    "1b) better reflects classification uncertainty far from the training data.",
)


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


def render(points: Sequence[Point], n_draws: int) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    points : sequence of Point
        Of both models on all data sets.
    n_draws : int
        Functions per model.

    Yields
    ------
    str
        The title, then Markdown.
    """
    models = {name: Places(points, name) for name in (DROPOUT, PROCESS)}
    n_sets = len(models[DROPOUT].star("x"))
    yield _TITLE
    yield _settings(n_sets, n_draws)
    yield f"## At x* = {STAR:g}, median over the data sets"
    yield _table(models)
    yield "## The paper's claims"
    yield f'The paper: "{_WORDS[0]}"'
    yield _first_claim(models)
    yield f'The paper: "{_WORDS[1]}"'
    yield _second_claim(models)


def _settings(n_sets: int, n_draws: int) -> str:
    return (
        "The paper's figure is a sketch; here it is computed. "
        f"{n_sets} data sets of {N_ROWS} labels with x in [-{EDGE:g}, {EDGE:g}], drawn "
        "with log odds 4 sin(2.5 (x - 1.4)). MC dropout: nets of "
        f"{' and '.join(map(str, HIDDEN))} ReLU units, {DROP_RATE:g} of each layer "
        f"dropped, l = {LENGTHSCALE:g}, {EPOCHS:,} epochs of Adam, T = {n_draws}; the "
        "point estimate is standard dropout. GP: the covariance function of such nets "
        "of infinite width, scales by marginal likelihood, Laplace's approximation; "
        "the point estimate is the mean of f. The figure shows the first data set: f "
        "with shades of half an sd up to two, and P(class 1)."
    )


def _table(models: dict[str, Places]) -> str:
    head = ["model", "f, point estimate", "sd of f", "mean/sd of f"]
    head += ["P(class 0), point estimate", "P(class 0), mean", "95% of functions up to"]
    head += ["change of P where data are"]
    return markdown_table(head, [_row(name, own) for name, own in models.items()])


def _row(name: str, own: Places) -> list[str]:
    change = np.abs(own.inside("other_mean") - own.inside("other_point"))
    return [
        name,
        f"{np.median(own.star('function')):+.1f}",
        f"{np.median(own.star('sd')):.1f}",
        f"{np.median(ratios(own)):.1f}",
        f"{np.median(own.star('other_point')):.1e}",
        f"{np.median(own.star('other_mean')):.4f}",
        f"{np.median(own.star('other_high')):.4f}",
        f"{change.mean():.3f}",
    ]


def _first_claim(models: dict[str, Places]) -> str:
    shares = {
        name: float((own.star("other_point") <= SURE).mean())
        for name, own in models.items()
    }
    shown = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    return (
        f"Class 1 with a probability of at least {1 - SURE:g} by the point estimate, "
        f"of the data sets: {shown}. In most of them: "
        f"{_verdict(min(shares.values()) > 0.5)}."
    )


def _second_claim(models: dict[str, Places]) -> str:
    lines = []
    for name, own in models.items():
        less = float((own.star("other_mean") > own.star("other_point")).mean())
        left = float(np.median(own.star("other_mean")))
        lines.append(
            f"- {name}: less sure of class 1 at x* than the point estimate in "
            f"{less:.0%} of the data sets (at least 95%): {_verdict(less >= 0.95)}. "
            f"Class 0 keeps {left:.2%} (median), at least {DOUBT:.0%}: "
            f"{_verdict(left >= DOUBT)}."
        )
    first, second = (np.median(ratios(own)) for own in models.values())
    lines.append(
        "\nWith ReLU units both the mean and the sd of f grow in proportion to x, so "
        "their ratio tends to a limit far away, and with it the doubt. It is "
        f"{first:.1f} for dropout and {second:.1f} for the GP: that dropout leaves "
        f"less doubt than the GP whose kernel it has: {_verdict(bool(first > second))}."
    )
    return "\n".join(lines)


def ratios(own: Places) -> Array:
    """Mean over sd of f at x*, for each data set."""
    return np.abs(own.star("mean")) / own.star("sd")


def _verdict(is_so: bool) -> str:
    return "**holds**" if is_so else "**does not hold**"
