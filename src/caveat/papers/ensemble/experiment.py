"""Section 4.2 of paper 000: many passes of one dropout network, or many networks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import stats

from caveat.errors import DataError
from caveat.papers.ensemble.comparison import (
    DROPOUT,
    LONG,
    MC,
    N_MEMBERS,
    PLAIN,
    SHORT,
    STANDARD,
    EnsembleEffort,
    EnsembleJob,
    Result,
    best,
    is_at_end,
    run_job,
    trials,
)
from caveat.papers.ensemble.networks import BATCH_SIZE, HIDDEN, LEARNING_RATE
from caveat.papers.experiment import Experiment
from caveat.papers.lenet import Images, NetStore, load_images
from caveat.papers.page import Part, bullets, claim, flow, holds, judged, table
from caveat.papers.style import ink, legend_below, line, name_axes, panels

CONFIDENCE = 0.95
SIMILAR = 0.1  # of the gap between one plain network and the ensemble
FULL = EnsembleEffort(10, 5, (1, 2, 5, 10, 20, 50, 100), None, None, 10_000, 1)
QUICK = EnsembleEffort(5, 2, (1, 2, 5, 10), 400, 1_000, 300, 1)
_WORDS = """Model ensembles are often used in deep learning as well, where the same
    model is trained several times and at test time the results of all models are
    averaged. This is computationally very expensive [...]. One would expect that
    stochastically simulating forward passes through a dropout network will result in
    similar performance."""


@dataclass(frozen=True)
class Average:
    """Over replicates; of gains: how much better MC dropout is."""

    value: float
    error: float  # its standard error
    n_replicates: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Average":
        """Of a number per replicate."""
        error = float(np.std(values, ddof=1) / math.sqrt(len(values)))
        return cls(float(np.mean(values)), error, len(values))

    @property
    def verdict(self) -> str:
        """In words, by Student's t: few replicates say little about their spread."""
        limit = stats.t.ppf(0.5 + CONFIDENCE / 2.0, self.n_replicates - 1) * self.error
        if abs(self.value) <= limit:
            return judged(f"no difference at {CONFIDENCE:.0%}")
        better = "MC dropout" if self.value > 0 else "the ensemble"
        return judged(f"{better} is better")

    def shown(self, digits: int, *, scale: float = 1.0, sign: str = "") -> str:
        """With its standard error."""
        value, error = scale * self.value, scale * self.error
        return f"{value:{sign}.{digits}f} ± {error:.{digits}f}"


def select(results: Sequence[Result], method: str, n_passes: int) -> list[Result]:
    """One result per replicate, on the test images."""
    wanted = ("test", method, n_passes)
    return [r for r in results if (r.part, r.method, r.n_passes) == wanted]


def passes(results: Sequence[Result], method: str) -> list[int]:
    """The numbers of passes of a method, on the test images."""
    own = (r for r in results if (r.part, r.method) == ("test", method))
    return sorted({r.n_passes for r in own})


def gain(first: Sequence[Result], second: Sequence[Result], name: str) -> Average:
    """How much better the first is, paired by replicate."""
    sign = -1.0 if name == "error" else 1.0
    pairs = zip(first, second, strict=True)
    return Average.of([sign * (getattr(a, name) - getattr(b, name)) for a, b in pairs])


def share_of_gain(results: Sequence[Result], n_draws: int, name: str) -> float:
    """MC dropout's gain over one plain network as a share of the ensemble's gain."""
    plain, ensemble = select(results, LONG, 1), select(results, LONG, N_MEMBERS)
    own = gain(select(results, MC, n_draws), plain, name).value
    return own / gain(ensemble, plain, name).value


def _trials(results: Sequence[Result]) -> Iterator[dict[str, str]]:
    """A row per setting, averaged over its networks."""
    for kind in (*PLAIN, *DROPOUT):
        own = [r for r in results if (r.part, r.kind) == ("validation", str(kind))]
        likelihoods = [r.log_likelihood for r in own]
        yield {
            "network": own[0].method,
            "setting": str(kind),
            "error %": f"{100 * np.mean([r.error for r in own]):.2f}",
            "mean log p": f"{np.mean(likelihoods):.4f}",
            "each": ", ".join(f"{value:.4f}" for value in likelihoods),
        }


def _chosen(results: Sequence[Result], n_tried: int) -> str:
    chosen = dict.fromkeys(r.kind for r in results if r.part == "test")
    ends = [str(kind) for kind in (*PLAIN, *DROPOUT) if is_at_end(kind)]
    found = [kind for kind in chosen if kind in ends]
    at_end = f"At an end of what was tried: {'; '.join(found)}." if found else ""
    none = "" if found else "None of them is at an end of what was tried."
    return flow(f"""Networks of each setting: {n_tried}. The choice is by their mean
        log-likelihood on the last training images, which they did not see. Chosen:
        {"; ".join(chosen)}. {at_end}{none}""")


def _where(results: Sequence[Result]) -> str:
    """Before which weight layers the chosen network drops, as it was chosen."""
    (chosen,) = {r.kind for r in results if (r.part, r.method) == ("test", MC)}
    (kind,) = (kind for kind in DROPOUT if str(kind) == chosen)
    if all(kind.drop_rates):
        return "before every weight layer, as the theory has it"
    return """before the second and the third weight layer: on pixels, before the first,
        other rates than 0 were tried and not chosen, so that layer is not Bayesian"""


def _row(own: Sequence[Result], epochs: int) -> dict[str, str]:
    first = own[0]
    return {
        "way to predict": f"{first.method}, {first.n_passes}",
        "cost of training": f"{first.epochs / epochs:.2g}",
        "cost of testing": str(first.n_passes),
        "error %": Average.of([r.error for r in own]).shown(3, scale=100),
        "mean log p": Average.of([r.log_likelihood for r in own]).shown(4),
    }


def _trust(n_replicates: int) -> str:
    doubt = 1.0 / math.sqrt(2.0 * (n_replicates - 1))
    return flow(f"""A standard error from {n_replicates} replicates is itself uncertain
        by about {doubt:.0%}, so a very small one may be luck;
        verdicts below are by Student's t.""")


def _claims(results: Sequence[Result]) -> Iterator[str]:
    most = passes(results, MC)[-1]
    times = f"({N_MEMBERS} times the training for the ensemble)"
    few, many = f"T = {N_MEMBERS}", f"T = {most}"
    contests = {
        f"Equal cost of training, {many}": (most, SHORT),
        f"Equal cost of training and of testing, {few}": (N_MEMBERS, SHORT),
        f"Equal cost of testing, {few} {times}": (N_MEMBERS, LONG),
        f"The most of both, {many} {times}": (most, LONG),
    }
    for title, (n_draws, method) in contests.items():
        pair = select(results, MC, n_draws), select(results, method, N_MEMBERS)
        error, likelihood = (gain(*pair, k) for k in ("error", "log_likelihood"))
        yield f"""{title}, MC dropout against the {method} of {N_MEMBERS}: error
            {error.shown(3, scale=100, sign="+")} points better, {error.verdict};
            log-likelihood {likelihood.shown(4, sign="+")} better,
            {likelihood.verdict}."""
    yield _why(results)
    yield _share(results, most)


def _why(results: Sequence[Result]) -> str:
    """What short trainings lose, beside what averaging them wins back."""
    short, long = (select(results, method, 1) for method in (SHORT, LONG))
    lost = gain(long, short, "error")
    won = gain(select(results, SHORT, N_MEMBERS), short, "error")
    return f"""Why short trainings lose: a single one costs {lost.shown(2, scale=100)}
        points of error, and averaging {N_MEMBERS} of them wins back
        {won.shown(2, scale=100)}."""


def _share(results: Sequence[Result], most: int) -> str:
    pair = select(results, MC, most), select(results, LONG, 1)
    error, likelihood = (gain(*pair, k) for k in ("error", "log_likelihood"))
    shares = [share_of_gain(results, most, k) for k in ("error", "log_likelihood")]
    return f"""Over one plain network, MC dropout with T = {most} gains
        {error.shown(3, scale=100)} points of error and {likelihood.shown(4)} of
        log-likelihood: {shares[0]:.0%} and {shares[1]:.0%} of what the ensemble of
        {N_MEMBERS} gains, for one training instead of {N_MEMBERS}. "Similar
        performance" (at least {1.0 - SIMILAR:.0%} of both):
        {holds(min(shares) >= 1.0 - SIMILAR)}."""


_LABELS = {
    MC: "MC dropout (training: 1)",
    LONG: "ensemble of n (training: n)",
    SHORT: "ensemble of n short trainings (n/5)",
}
_SCORES = (("error", 100.0, "test error, %"), ("log_likelihood", 1.0, "mean log p"))


def _panel(axes: Axes, results: Sequence[Result], name: str, scale: float) -> None:
    def averages(method: str) -> list[Average]:
        each = (select(results, method, n) for n in passes(results, method))
        return [Average.of([scale * getattr(r, name) for r in own]) for own in each]

    for k, (method, label) in enumerate(_LABELS.items()):
        own = averages(method)
        axes.errorbar(
            passes(results, method),
            [each.value for each in own],
            yerr=[each.error for each in own],
            label=label,
            capsize=2,
            **ink(k),
        )
    (level,) = averages(STANDARD)
    axes.axhline(level.value, label="dropout, averaged weights", **line(3))
    grid = passes(results, MC)
    axes.set_xscale("log")
    axes.set_xticks(grid, [str(n) for n in grid])
    axes.minorticks_off()


Key = tuple[str, int, str, str, int]


@dataclass(frozen=True)
class Ensembles(Experiment[EnsembleJob, Result]):
    """MC dropout against ensembles of equal training and of equal test cost.

    Networks in the folder ``lenet`` are not trained again.
    """

    name = "ensemble"
    title = "MC dropout against ensembles of networks (paper 000, section 4.2)"
    record = Result

    @property
    def effort(self) -> EnsembleEffort:
        """How much is run."""
        return QUICK if self.quick else FULL

    @property
    def images(self) -> Images:
        """MNIST; for a smoke test other digits are good enough."""
        images = load_images()
        if images.name != "MNIST" and not self.quick:
            raise DataError(
                f"{self.command} needs MNIST, the images found are {images.name}. See "
                "`caveat data list`, or add --quick for a smoke test on these."
            )
        return images

    def jobs(self, records: Sequence[Result]) -> list[EnsembleJob]:
        """What is tested is chosen by the trials."""
        tried = [r for r in records if r.part == "validation"]
        settings = trials(self.effort.n_tried)
        if len(tried) < len(settings):
            return settings
        dropout, plain = (best(kinds, tried) for kinds in (DROPOUT, PLAIN))
        methods = {MC: dropout, LONG: plain, SHORT: plain}
        replicates = [
            EnsembleJob("test", k, method, kind)
            for k in range(self.effort.n_replicates)
            for method, kind in methods.items()
        ]
        return settings + replicates

    def key(self, record: Result) -> Key:
        own = record.part, record.replicate, record.method, record.kind
        return *own, record.n_passes

    def keys(self, job: EnsembleJob) -> list[Key]:
        ways = job.ways(self.effort)
        return [(job.part, job.replicate, m, str(job.kind), n) for m, n in ways]

    def run(self, job: EnsembleJob) -> list[Result]:
        store = NetStore(self.folder / "lenet", self.images.name)
        return run_job(job, store, self.images, self.effort)

    def page(self, records: Sequence[Result]) -> Iterator[Part]:
        images, effort = self.images, self.effort
        n_train = effort.n_train or len(images.train)
        n_test = len(images.test.first(effort.n_images))
        yield claim(_WORDS, "", end=" It gives no numbers.")
        yield flow(f"""{images.name}, {n_train:,} images to train on, {n_test:,} to test
            on. Perceptrons 784-{"-".join(map(str, HIDDEN))}-10 with dropout
            {_where(records)}; trained as a fleet by Adam (batch
            {BATCH_SIZE}, rate {LEARNING_RATE:g} falling along a cosine),
            {effort.epochs} epochs; not LeNet, because these take much less time, so
            that everything can be repeated: {effort.n_replicates} replicates of one
            dropout network, {N_MEMBERS} plain networks trained as long (*ensemble*),
            and {N_MEMBERS} plain networks of {effort.epochs // N_MEMBERS} epochs each
            (*short ensemble*, which costs as much to train as the one dropout network).
            Members differ in first weights and order of images.""")
        yield "## What was chosen, on held-out training images"
        yield table(_trials(records))
        yield _chosen(records, effort.n_tried)
        yield "## Test images"
        yield table(
            _row(select(records, method, n), effort.epochs)
            for method in (STANDARD, MC, SHORT, LONG)
            for n in passes(records, method)
        )
        yield flow("""Averages over replicates ± standard error over replicates. A cost
            of training of 1 is one network for all epochs; a cost of testing of 1 is
            one pass through one network. Ensembles of fewer than all members are
            averages over all such sets of members, those of few passes over disjoint
            groups of draws.""")
        yield _trust(effort.n_replicates)
        yield "## The claim"
        yield bullets(_claims(records))

    def in_brief(self, records: Sequence[Result]) -> tuple[str, str]:
        most = passes(records, MC)[-1]
        error, likelihood = (
            share_of_gain(records, most, name) for name in ("error", "log_likelihood")
        )
        paper = """many passes through one dropout network should do about as well as an
            ensemble of networks"""
        ours = f"""they gain {error:.0%} of what an ensemble of {N_MEMBERS} gains in
            error and {likelihood:.0%} in log-likelihood, for 1/{N_MEMBERS} of the
            training"""
        return paper, ours

    def figure(self, records: Sequence[Result]) -> Figure:
        """Error and log-likelihood against the cost of testing and of training."""
        figure, grid = panels(1, 2, height=2.9)
        for axes, (name, scale, label) in zip(grid[0], _SCORES, strict=True):
            _panel(axes, records, name, scale)
            name_axes(axes, "", "passes through a network per image", label)
        legend_below(figure, grid[0, 0], ncols=2)
        return figure
