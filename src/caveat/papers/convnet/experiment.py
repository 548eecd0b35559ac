"""LeNets with dropout nowhere, at the end and everywhere: section 4.2 of paper 000."""

import math
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.convnet.curves import (
    N_GROWN,
    STANDARD,
    CurvePoint,
    Growth,
    curve,
    feature_growth,
)
from caveat.papers.experiment import Experiment
from caveat.papers.lenet import (
    DROPOUT,
    SOLVER,
    Labelled,
    NetJob,
    NetStore,
    images_of,
    load_images,
)
from caveat.papers.page import Claim, Part, bullets, flow, holds, judged, table
from caveat.papers.records import read_records, write_records
from caveat.papers.style import ink, legend_below, line, name_outer, panels

SURE = 2.0  # standard errors
N_SEEDS = 5
_WORDS = flow("""The application of dropout after every weight layer is not used in
    practice however, as empirical results using *standard* dropout suggest inferior
    performance. The use of MC dropout, however, with dropout applied after every weight
    layer results in much better empirical performance on some MLP structures.""")


@dataclass(frozen=True)
class Difference:
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
        open_ = judged("not decided by these networks")
        return open_ if self.is_none else holds(self.is_sure)

    def __str__(self) -> str:
        return f"{100 * self.value:+.3f} ± {100 * self.error:.3f} points"


def sizes(points: Sequence[CurvePoint], where: str) -> list[int]:
    """The numbers of draws of networks with dropout there."""
    return sorted({p.n_draws for p in points if p.dropout == where} - {STANDARD})


def select(points: Sequence[CurvePoint], where: str, n_draws: int) -> list[CurvePoint]:
    """One point per network, by seed."""
    found = (p for p in points if (p.dropout, p.n_draws) == (where, n_draws))
    return sorted(found, key=lambda point: point.seed)


def mean_of(points: Sequence[CurvePoint], where: str, n_draws: int, name: str) -> float:
    """The average over networks."""
    return float(np.mean([getattr(p, name) for p in select(points, where, n_draws)]))


def gain(points: Sequence[CurvePoint], where: str) -> Difference:
    """Error of the standard pass less that of the most draws, network by network."""
    most = sizes(points, where)[-1]
    return between(select(points, where, STANDARD), select(points, where, most))


def between(first: Sequence[CurvePoint], second: Sequence[CurvePoint]) -> Difference:
    """Error of the first less that of the second, paired by seed and by image.

    The standard error counts other seeds and other test images.
    """
    wrong = np.stack([_wrong(p) for p in first]) - np.stack([_wrong(p) for p in second])
    both = [_variance(wrong.mean(axis)) for axis in (0, 1)]
    return Difference(float(wrong.mean()), math.sqrt(sum(both)))


def _wrong(point: CurvePoint) -> np.ndarray:
    """1 for each image with a wrong label, else 0."""
    found = np.zeros(point.n_images)
    found[[int(number) for number in point.wrong.split()]] = 1.0
    return found


def _variance(values: np.ndarray) -> float:
    """Of the mean of these; 0 if there is one only, which tells nothing."""
    return float(values.var(ddof=1) / len(values)) if values[1:].size else 0.0


def _row(points: Sequence[CurvePoint], where: str, n_draws: int) -> dict[str, str]:
    likelihood = mean_of(points, where, n_draws, "log_likelihood")
    return {
        "dropout": where,
        "prediction": f"MC, T = {n_draws}" if n_draws else "standard",
        "error %, average": f"{100 * mean_of(points, where, n_draws, 'error'):.3f}",
        "each network": ", ".join(map(_error, select(points, where, n_draws))),
        "mean log p": f"{likelihood:.4f}",
    }


def _error(point: CurvePoint) -> str:
    shown = f"{100 * point.error:.2f}"
    return f"{shown} ± {100 * point.error_sd:.2f}" if point.n_groups > 1 else shown


def _claims(points: Sequence[CurvePoint]) -> Iterator[str]:
    most = sizes(points, "everywhere")[-1]
    worse = between(*(select(points, w, STANDARD) for w in ("everywhere", "end")))
    yield f"""Standard dropout everywhere is inferior to standard dropout at the end:
        {worse.verdict} ({worse})."""
    needed = gain(points, "everywhere")
    yield f"""With dropout everywhere, MC averaging (T = {most}) beats averaged weights:
        {needed.verdict} ({needed}). From T =
        {_break_even(points, "everywhere")} on its error is the smaller one."""
    same = gain(points, "end")
    yield f"""With dropout at the end it makes no difference to the error:
        {holds(same.is_none)} ({same}). The masks stand before a linear layer, so
        averaged weights give the mean of the logits exactly."""
    for other in ("end", "none"):
        theirs = select(points, other, max(sizes(points, other), default=STANDARD))
        best = between(theirs, select(points, "everywhere", most))
        yield f"MC dropout everywhere beats dropout *{other}*: {best.verdict} ({best})."
    changes = "; ".join(_likelihoods(points, where, most) for where in DROPOUT[1:])
    yield f"Log-likelihood from averaged weights to T = {most}: {changes}."


def _likelihoods(points: Sequence[CurvePoint], where: str, most: int) -> str:
    before, after = (
        mean_of(points, where, n, "log_likelihood") for n in (STANDARD, most)
    )
    return f"{where} {before:.4f} to {after:.4f}"


def _break_even(points: Sequence[CurvePoint], where: str) -> str:
    level = mean_of(points, where, STANDARD, "error")
    tried = sizes(points, where)
    better = (n for n in tried if mean_of(points, where, n, "error") < level)
    return str(next(better, "no tried number"))


def _why(growth: Sequence[Growth]) -> str:
    first, second = (
        np.mean([own.ratio for own in growth if own.pooling == k]) for k in (1, 2)
    )
    return flow(f"""Pooling takes maxima. The average over masks of a maximum of noisy
        numbers is larger than the maximum of the averages, so with averaged weights
        every layer after a pooling sees smaller numbers than in training. In the
        networks with dropout everywhere the pooled features are {first:.2f} times as
        large on average over masks as with averaged weights after the first pooling,
        and {second:.2f} times after the second (root mean squares, {N_GROWN} test
        images). Averaged weights are right only where all behind a mask is linear.""")


def _panel(axes: Axes, points: Sequence[CurvePoint], where: str, name: str) -> None:
    scale = 100.0 if name == "error" else 1.0
    grid = sizes(points, where)
    each = np.array(
        [[getattr(p, name) for p in select(points, where, size)] for size in grid]
    )
    axes.plot(grid, scale * each, color="0.8", linewidth=0.8)
    drawn = scale * each.mean(1)
    axes.plot(grid, drawn, label="MC dropout (thin: each network)", **ink(0))
    labels = {where: "standard: averaged weights", DROPOUT[0]: "no dropout"}
    for k, (other, label) in enumerate(labels.items(), start=1):
        level = scale * mean_of(points, other, STANDARD, name)
        axes.axhline(level, label=label, **line(k))
    axes.set_xscale("log")
    axes.set_xticks(grid, [str(size) for size in grid])
    axes.minorticks_off()


Key = tuple[str, int, int, int, int]  # dropout, steps, seed, draws, images


@dataclass(frozen=True)
class ConvNet(Experiment[NetJob, CurvePoint]):
    """Three places of dropout, some seeds; a job is a network.

    Those with dropout everywhere also leave ``convnet_growth_SEED.csv``.
    """

    name = "convnet"
    title = (
        "LeNet with dropout nowhere, at the end, everywhere (paper 000, section 4.2)"
    )
    record = CurvePoint

    @property
    def test(self) -> Labelled:
        """The images to test on."""
        return load_images().test.first(300 if self.quick else None)

    def sizes(self, job: NetJob) -> tuple[int, ...]:
        """Numbers of draws; none for a network without dropout."""
        most = (1, 2, 5, 10) if self.quick else (1, 2, 5, 10, 20, 50, 100)
        return most if job.dropout != "none" else ()

    def growth(self, seed: int) -> Path:
        """The file with the growth of a network's features."""
        path = self.path("csv")
        return path.with_stem(f"{path.stem}_growth_{seed}")

    def jobs(self, records: Sequence[CurvePoint]) -> list[NetJob]:
        n_steps, seeds = (60, range(1)) if self.quick else (10_000, range(N_SEEDS))
        return [NetJob(w, n_steps, seed) for seed, w in product(seeds, DROPOUT)]

    def key(self, record: CurvePoint) -> Key:
        net = record.dropout, record.n_steps, record.seed
        return *net, record.n_draws, record.n_images

    def keys(self, job: NetJob) -> list[Key]:
        net, n_images = (job.dropout, job.n_steps, job.seed), len(self.test)
        return [(*net, n, n_images) for n in (STANDARD, *self.sizes(job))]

    def is_done(self, job: NetJob, known: Collection[Hashable]) -> bool:
        has_growth = job.dropout != "everywhere" or self.growth(job.seed).exists()
        return has_growth and super().is_done(job, known)

    def run(self, job: NetJob) -> list[CurvePoint]:
        images = load_images()
        net = NetStore(self.folder / "lenet", images.name).get(job)
        if job.dropout == "everywhere":
            ratios = enumerate(feature_growth(net, images.test), start=1)
            growth = [Growth(images.name, job.seed, *ratio) for ratio in ratios]
            write_records(self.growth(job.seed), growth)
        return list(curve(net, job, self.test, self.sizes(job)))

    def page(self, records: Sequence[CurvePoint]) -> Iterator[Part]:
        seeds = sorted({p.seed for p in records})
        growth = [g for s in seeds for g in read_records(self.growth(s), Growth)]
        images, first = images_of({g.data for g in growth}), records[0]
        yield Claim(_WORDS, end=" It gives no numbers.")
        yield flow(f"""{images.name}, {len(images.train):,} images to train on,
            {first.n_images:,} to test on. LeNet 20-50-500-10 and the released solver
            ({SOLVER}), {first.n_steps:,} steps (the released files `lenet_solver_10K`,
            `lenet_dropout_solver_10K` and `lenet_all_dropout_solver_10K` have 10,000).
            Dropout 0.5: *none*; *end*, after the ReLU of 500 units; *everywhere*, also
            after both convolutions, before their pooling. Seeds: {len(seeds)}; networks
            of one seed start from the same weights and see the images in the same
            order. No setting was chosen here.""")
        yield "## Test error and log-likelihood"
        yield table(
            _row(records, where, n_draws)
            for where in DROPOUT
            for n_draws in (STANDARD, *sizes(records, where))
        )
        yield flow("""± is the standard deviation over groups of draws of a network: a
            call with so few passes is that uncertain. A pass has one mask for all
            images.""")
        yield "## The claims"
        yield bullets(_claims(records))
        yield flow("""Differences are paired by seed and by test image. ± here is a
            standard error that counts both: how much other seeds, and how much other
            test images would have changed.""")
        yield "## Why"
        yield _why(growth)

    def in_brief(self, records: Sequence[CurvePoint]) -> tuple[str, str]:
        most = sizes(records, "everywhere")[-1]
        cases = (("end", STANDARD), ("everywhere", STANDARD), ("everywhere", most))
        end, standard, mc = (
            f"{mean_of(records, *case, 'error'):.2%}" for case in cases
        )
        paper = """dropout after every layer is inferior with averaged weights and much
            better with MC dropout"""
        ours = f"""test error of LeNet {end} with dropout at the end; with dropout
            everywhere {standard} by averaged weights and {mc} by MC dropout"""
        return paper, ours

    def figure(self, records: Sequence[CurvePoint]) -> Figure:
        """Test error and log-likelihood against the number of passes."""
        figure, grid = panels(2, 2, height=4.2, sharex=True, sharey="row")
        for column, where in zip(grid.T, DROPOUT[1:], strict=True):
            _panel(column[0], records, where, "error")
            _panel(column[1], records, where, "log_likelihood")
        grid[0, 0].set_title("dropout at the end")
        grid[0, 1].set_title("dropout everywhere")
        grid[0, 0].set_ylabel("test error, %")
        grid[1, 0].set_ylabel("mean log-likelihood")
        name_outer(grid, x="passes, T")
        legend_below(figure, grid[0, 0], ncols=3)
        return figure
