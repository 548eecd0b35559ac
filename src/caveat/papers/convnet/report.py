"""The page: claims of section 4.2 and what the networks say."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from caveat.papers.lenet import DROPOUT, SOLVER, STANDARD, Images, Point
from caveat.papers.page import markdown_table

SURE = 2.0  # standard errors

_TITLE = "LeNet with dropout nowhere, at the end, everywhere (paper 000, section 4.2)"
_WORDS = (
    "The application of dropout after every weight layer is not used in practice "
    "however, as empirical results using *standard* dropout suggest inferior "
    "performance. The use of MC dropout, however, with dropout applied after every "
    "weight layer results in much better empirical performance on some MLP structures."
)


@dataclass(frozen=True)
class Gap:
    """A difference and its standard error."""

    value: float
    error: float

    @property
    def is_sure(self) -> bool:
        """Whether it is positive beyond doubt."""
        return self.value > SURE * self.error

    @property
    def is_none(self) -> bool:
        """Whether it may as well be 0."""
        return abs(self.value) <= SURE * self.error

    @property
    def verdict(self) -> str:
        """Whether a claim that it is positive holds."""
        if self.is_none:
            return "not decided by these networks"
        return _holds(self.is_sure)

    def __str__(self) -> str:
        return f"{100 * self.value:+.3f} ± {100 * self.error:.3f} points"


def render(
    points: Sequence[Point], images: Images, growth: Sequence[Sequence[float]]
) -> Iterator[str]:
    """The parts of the page.

    Parameters
    ----------
    points : sequence of Point
        Of all networks.
    images : Images
        What they were trained on.
    growth : sequence of sequence of float
        Of pooled features, for each network with dropout everywhere.

    Yields
    ------
    str
        The title, then Markdown.
    """
    yield _TITLE
    yield f'The paper: "{_WORDS}" It gives no numbers.'
    yield _settings(points, images)
    yield "## Test error and log-likelihood"
    yield _table(points)
    yield (
        "± is the standard deviation over groups of draws of a network: a call with so "
        "few passes is that uncertain. A pass has one mask for all images."
    )
    yield "## The claims"
    yield "\n".join(f"- {line}" for line in _claims(points))
    yield (
        "± here is a standard error. Between different networks it counts the test "
        "images only, not how much other seeds would have changed."
    )
    yield "## Why"
    yield _why(growth)


def sizes(points: Sequence[Point], where: str) -> list[int]:
    """The numbers of draws of networks with dropout there."""
    return sorted({p.n_draws for p in points if p.dropout == where} - {STANDARD})


def select(points: Sequence[Point], where: str, n_draws: int) -> list[Point]:
    """One point per network."""
    return [p for p in points if (p.dropout, p.n_draws) == (where, n_draws)]


def mean_of(points: Sequence[Point], where: str, n_draws: int, name: str) -> float:
    """The average over networks."""
    return float(np.mean([getattr(p, name) for p in select(points, where, n_draws)]))


def gain(points: Sequence[Point], where: str) -> Gap:
    """Error of the standard pass less that of the most draws, paired by image."""
    own = select(points, where, sizes(points, where)[-1])
    images = sum(p.n_images for p in own)
    mended, broken = (sum(getattr(p, k) for p in own) for k in ("mended", "broken"))
    return Gap((mended - broken) / images, math.sqrt(mended + broken) / images)


def between(first: Sequence[Point], second: Sequence[Point]) -> Gap:
    """Error of the first less that of the second, for different networks.

    The standard error is that of independent test images for each network. It leaves
    out what the choice of seeds adds.
    """
    mean = np.mean([p.error for p in first]) - np.mean([p.error for p in second])
    variance = sum(
        p.error * (1.0 - p.error) / p.n_images / len(own) ** 2
        for own in (first, second)
        for p in own
    )
    return Gap(float(mean), math.sqrt(variance))


def _settings(points: Sequence[Point], images: Images) -> str:
    first = points[0]
    seeds = len({p.seed for p in points})
    return (
        f"{images.name}, {len(images.train):,} images to train on, {first.n_images:,} "
        f"to test on. LeNet 20-50-500-10 and the released solver (batch "
        f"{SOLVER.batch_size}, rate {SOLVER.base_rate} (1 + {SOLVER.gamma:g} "
        f"step)^-{SOLVER.power}, momentum {SOLVER.momentum}, decay "
        f"{SOLVER.weight_decay:g}), {first.n_steps:,} steps (the released files "
        "`lenet_solver_10K`, `lenet_dropout_solver_10K` and "
        "`lenet_all_dropout_solver_10K` have 10,000). Dropout 0.5: *none*; *end*, "
        "after the ReLU of 500 units; *everywhere*, also after both convolutions, "
        f"before their pooling. Seeds: {seeds}; networks of one seed start from the "
        "same weights and see the images in the same order. No setting was chosen here."
    )


def _table(points: Sequence[Point]) -> str:
    head = ["dropout", "prediction", "error %, average", "each network", "mean log p"]
    rows = []
    for where in DROPOUT:
        for n_draws in [STANDARD, *sizes(points, where)]:
            own = select(points, where, n_draws)
            rows.append(
                [
                    where,
                    f"MC, T = {n_draws}" if n_draws else "standard",
                    f"{100 * mean_of(points, where, n_draws, 'error'):.3f}",
                    ", ".join(map(_error, own)),
                    f"{mean_of(points, where, n_draws, 'log_likelihood'):.4f}",
                ]
            )
    return markdown_table(head, rows)


def _error(point: Point) -> str:
    shown = f"{100 * point.error:.2f}"
    return f"{shown} ± {100 * point.error_sd:.2f}" if point.n_groups > 1 else shown


def _claims(points: Sequence[Point]) -> Iterator[str]:
    most = sizes(points, "everywhere")[-1]
    standard = {where: select(points, where, STANDARD) for where in DROPOUT}
    worse = between(standard["everywhere"], standard["end"])
    yield (
        f"Standard dropout everywhere is inferior to standard dropout at the end: "
        f"{worse.verdict} ({worse})."
    )
    needed = gain(points, "everywhere")
    yield (
        f"With dropout everywhere, MC averaging (T = {most}) beats averaged weights: "
        f"{needed.verdict} ({needed}, paired by image). From T = "
        f"{_break_even(points, 'everywhere')} on its error is the smaller one."
    )
    same = gain(points, "end")
    yield (
        f"With dropout at the end it makes no difference to the error: "
        f"{_holds(same.is_none)} ({same}). The masks stand before a linear layer, so "
        "averaged weights give the mean of the logits exactly."
    )
    for other in ("end", "none"):
        n_draws = sizes(points, other)[-1] if other != "none" else STANDARD
        best = between(
            select(points, other, n_draws), select(points, "everywhere", most)
        )
        yield (
            f"MC dropout everywhere beats dropout *{other}*: {best.verdict} ({best})."
        )
    yield _likelihood(points, most)


def _likelihood(points: Sequence[Point], most: int) -> str:
    parts = []
    for where in DROPOUT[1:]:
        before = mean_of(points, where, STANDARD, "log_likelihood")
        after = mean_of(points, where, most, "log_likelihood")
        parts.append(f"{where} {before:.4f} to {after:.4f}")
    return f"Log-likelihood from averaged weights to T = {most}: {'; '.join(parts)}."


def _break_even(points: Sequence[Point], where: str) -> str:
    level = mean_of(points, where, STANDARD, "error")
    better = [
        size
        for size in sizes(points, where)
        if mean_of(points, where, size, "error") < level
    ]
    return str(better[0]) if better else "no tried number"


def _why(growth: Sequence[Sequence[float]]) -> str:
    first, second = (np.mean([own[k] for own in growth]) for k in (0, 1))
    return (
        "Pooling takes maxima. The average over masks of a maximum of noisy numbers is "
        "larger than the maximum of the averages, so with averaged weights every layer "
        "after a pooling sees smaller numbers than in training. In the networks with "
        f"dropout everywhere the pooled features are {first:.2f} times as large on "
        f"average over masks as with averaged weights after the first pooling, and "
        f"{second:.2f} times after the second (root mean squares, 500 test images). "
        "Averaged weights are right only where all behind a mask is linear."
    )


def _holds(is_so: bool) -> str:
    return "holds" if is_so else "does not hold"
