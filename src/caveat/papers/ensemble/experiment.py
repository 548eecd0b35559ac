"""Section 4.2 of paper 000: many passes of one dropout network, or many networks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.errors import DataError
from caveat.papers.ensemble.averages import Average, by_network, passes, select
from caveat.papers.ensemble.choosing import STARTS, Search, search
from caveat.papers.ensemble.comparison import (
    LONG,
    MC,
    N_MEMBERS,
    SHORT,
    STANDARD,
    TEST,
    EnsembleEffort,
    EnsembleJob,
    Result,
    run_job,
    scores,
    trials,
)
from caveat.papers.ensemble.networks import LENET, MLP, Kind
from caveat.papers.ensemble.wording import about, brief, how_chosen
from caveat.papers.experiment import Experiment
from caveat.papers.lenet import Images, load_images
from caveat.papers.page import Part, claim, flow
from caveat.papers.style import ink, legend_below, line, panels

_SIZES = (1, 2, 5, 10, 20, 50)
FULL = {
    MLP: EnsembleEffort(10, 10, (*_SIZES, 100), None, None, 10_000, 3, 100),
    LENET: EnsembleEffort(3_000, 3, _SIZES, None, None, 5_000, 2, 20),
}
QUICK = {
    MLP: EnsembleEffort(5, 2, (1, 2, 5, 10), 400, 1_000, 300, 1, 5),
    LENET: EnsembleEffort(10, 2, (1, 2, 5), 200, 1_000, 200, 1, 5),
}
_WORDS = """Model ensembles are often used in deep learning as well, where the same
    model is trained several times and at test time the results of all models are
    averaged. This is computationally very expensive [...]. One would expect that
    stochastically simulating forward passes through a dropout network will result in
    similar performance."""
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


Key = tuple[str, int, str, Kind, int]


@dataclass(frozen=True)
class Ensembles(Experiment[EnsembleJob, Result]):
    """MC dropout against ensembles of equal training and of equal test cost."""

    name = "ensemble"
    title = "MC dropout against ensembles of networks (paper 000, section 4.2)"
    record = Result

    @property
    def efforts(self) -> dict[str, EnsembleEffort]:
        """How much is run, for each kind of network."""
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
        """What is tried next follows from what was tried; tests, from the choice."""
        return [job for name in self.efforts for job in self._jobs(name, records)]

    def _jobs(self, name: str, records: Sequence[Result]) -> list[EnsembleJob]:
        effort = self.efforts[name]
        known = scores(records, effort.n_tried)
        plain, dropout = (self._search(start, known) for start in STARTS[name])
        found = trials((*plain.tried, *dropout.tried), effort.n_tried)
        if plain.chosen is None or dropout.chosen is None:
            return found
        methods = {MC: dropout.chosen, LONG: plain.chosen, SHORT: plain.chosen}
        replicates = range(effort.n_replicates)
        tests = [EnsembleJob(TEST, k, *m) for k in replicates for m in methods.items()]
        return found + tests

    def _search(self, start: Kind, known: dict[Kind, float]) -> Search:
        """A smoke test looks at one setting."""
        if self.quick:
            return Search((start,), start if start in known else None)
        return search(start, known)

    def key(self, record: Result) -> Key:
        own = record.part, record.replicate, record.method, record.kind
        return *own, record.n_passes

    def keys(self, job: EnsembleJob) -> list[Key]:
        ways = job.ways(self.efforts[job.kind.network])
        return [(job.part, job.replicate, m, job.kind, n) for m, n in ways]

    def run(self, job: EnsembleJob) -> list[Result]:
        return run_job(job, self.images, self.efforts[job.kind.network])

    def page(self, records: Sequence[Result]) -> Iterator[Part]:
        images, effort = self.images, self.efforts[MLP]
        n_train = effort.n_train or len(images.train)
        n_test = len(images.test.first(effort.n_images))
        yield claim(_WORDS, "", end=" It gives no numbers.")
        yield flow(f"""{images.name}, {n_train:,} images to train on, {n_test:,} to test
            on. Averages over replicates ± standard error over replicates. A cost of
            training of 1 is one network of full length; a cost of testing of 1 is one
            pass through one network. Ensembles of fewer than all members are averages
            over all such sets of members, those of few passes over disjoint groups of
            draws.""")
        yield how_chosen()
        for name, own in by_network(records).items():
            yield from about(name, own, self.efforts[name])

    def in_brief(self, records: Sequence[Result]) -> tuple[str, str]:
        paper = """many passes through one dropout network should do about as well as an
            ensemble of networks"""
        ours = "; ".join(
            f"{name}: {brief(own)}" for name, own in by_network(records).items()
        )
        return paper, f"{ours}, for 1/{N_MEMBERS} of the training"

    def figure(self, records: Sequence[Result]) -> Figure:
        """Error and log-likelihood against the cost of testing and of training."""
        found = by_network(records)
        figure, grid = panels(len(found), 2, height=2.3 * len(found) + 0.5)
        for row, (name, own) in zip(grid, found.items(), strict=True):
            for axes, (score, scale, label) in zip(row, _SCORES, strict=True):
                _panel(axes, own, score, scale)
                axes.set(title=name, ylabel=label)
        for axes in grid[-1]:
            axes.set_xlabel("passes through a network per image")
        legend_below(figure, grid[0, 0], ncols=2)
        return figure
