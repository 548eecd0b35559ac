"""Labels cost money: ask for those that are worth most
====================================================

A classifier starts from 20 labelled digits and asks for more, ten at a time: at random,
where its draws disagree (BALD), or in batches without near duplicates (BatchBALD).

::

    python examples/active_learning.py                    # small digits, seconds
    python examples/active_learning.py --mnist            # the experiment, minutes
    python examples/active_learning.py --mnist --output docs/results

The experiment goes on where it was stopped. Its settings were chosen on training images
that are not in the pool (50,000 to 54,999); the test images are only reported on.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import caveat
from caveat.data.images import load_mnist
from caveat.decisions import ActiveLearner, LearningCurve, acquisition
from caveat.engines import spread
from caveat.estimators import DropoutClassifier, Schedule
from caveat.papers.page import markdown_table
from caveat.papers.records import read_records, write_records
from caveat.papers.style import house_style, ink, line, name_axes, panels
from caveat.predictive import CategoricalPredictive

Array = NDArray[Any]

METHODS: dict[str, acquisition.Acquisition] = {
    "random": acquisition.RandomChoice(),
    "BALD": acquisition.TopScore(acquisition.bald),
    "BatchBALD": acquisition.BatchBALD(max_configurations=200),
}
N_START, N_PER_STEP = 20, 10
Found = dict[str, list[LearningCurve]]


@dataclass(frozen=True)
class Point:
    """One fit of one run: what the CSV file holds."""

    method: str
    seed: int
    n_labels: int
    accuracy: float


@dataclass(frozen=True)
class Experiment:
    """Data, a model, and how far to go.

    Attributes
    ----------
    name : str
        Of the files.
    pool, test : function
        That give images and labels.
    model : function
        From a seed to an estimator.
    n_labels : int
        The most labels a run may ask for.
    n_candidates : int or None
        Rows of the pool that are judged in each step.
    n_seeds : int
        Runs of each method.
    targets : tuple of float
        Accuracies for which the labels are counted.
    ends_at_target : bool
        Whether a run ends when the last of them is reached.
    """

    name: str
    pool: Callable[[], tuple[Any, Array]]
    test: Callable[[], tuple[Any, Array]]
    model: Callable[[int], Any]
    n_labels: int
    n_candidates: int | None
    n_seeds: int
    targets: tuple[float, float]
    ends_at_target: bool


@dataclass
class Convnet:
    """LeNet in miniature, trained from scratch; dropout after its convolutions."""

    seed: int
    n_steps: int = 240
    learning_rate: float = 5e-3
    n_draws: int = 50

    def fit(self, x: Tensor, y: Array) -> Self:
        """A few hundred steps of Adam on batches of 32."""
        seed = 100_000 * self.seed + len(y)
        generator = np.random.default_rng(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.net = self._trained(x, torch.from_numpy(y).long(), generator)
        return self

    def predictive(
        self, x: Tensor, *, n_draws: int | None = None
    ) -> CategoricalPredictive:
        """Draws with masks shared by all images, kept."""
        mc = caveat.MCDropout(self.net, seed=self.seed)
        return mc.classify(
            x, n_draws=n_draws or self.n_draws, batch_size=500, progress=False
        )

    def accuracy(self, x: Tensor, y: Array) -> float:
        """Of the average of 10 draws."""
        return float((self.predictive(x, n_draws=10).label.numpy() == y).mean())

    def _trained(self, x: Tensor, y: Tensor, generator: np.random.Generator) -> Any:
        net = nn.Sequential(
            nn.Conv2d(1, 16, 5), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(16, 32, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
            nn.Dropout(0.25), nn.Linear(512, 128), nn.ReLU(),
            nn.Dropout(0.5), nn.Linear(128, 10),
        ).to(memory_format=torch.channels_last)  # fmt: skip
        rate, steps = self.learning_rate, self.n_steps
        adam = torch.optim.Adam(net.parameters(), rate, fused=True)
        schedule = torch.optim.lr_scheduler.OneCycleLR(adam, rate, total_steps=steps)
        for rows in _batches(len(y), steps, generator):
            adam.zero_grad()
            cross_entropy(net(x[rows]), y[rows]).backward()
            adam.step()
            schedule.step()
        return net.eval()


def _batches(n_rows: int, n_steps: int, generator: np.random.Generator) -> list[Array]:
    n_rounds = 32 * n_steps // n_rows + 1
    order = np.concatenate([generator.permutation(n_rows) for _ in range(n_rounds)])
    return np.split(order[: 32 * n_steps], n_steps)


def small_digits(part: str) -> tuple[Array, Array]:
    """Digits of 8 by 8 pixels: 1297 in the pool, 500 to test on."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    rows = order[500:] if part == "pool" else order[:500]
    return x[rows], y[rows]


@lru_cache
def mnist(part: str) -> tuple[Tensor, Array]:
    """Digits of 28 by 28 pixels: 50,000 in the pool, 10,000 to test on."""
    images = load_mnist().test if part == "test" else load_mnist().train
    pixels = torch.from_numpy(images.image[:50_000, None]).float() / 255
    return pixels, images.label[:50_000].astype(np.int64)


def perceptron(seed: int) -> DropoutClassifier:
    """A perceptron that is fitted in a fraction of a second."""
    return DropoutClassifier(
        (64,),
        drop_rate=0.2,
        schedule=Schedule(epochs=60),
        n_draws=50,
        random_state=seed,
    )


DIGITS = Experiment(
    name="digits",
    pool=partial(small_digits, "pool"),
    test=partial(small_digits, "test"),
    model=perceptron,
    n_labels=120,
    n_candidates=400,
    n_seeds=2,
    targets=(0.80, 0.88),
    ends_at_target=False,
)
MNIST = Experiment(
    name="mnist",
    pool=partial(mnist, "pool"),
    test=partial(mnist, "test"),
    model=Convnet,
    n_labels=1000,
    n_candidates=2000,
    n_seeds=5,
    targets=(0.90, 0.95),
    ends_at_target=True,
)


def run(
    experiment: Experiment, folder: Path | None, job: tuple[str, int]
) -> list[Point]:
    """One run of one method, from the start or from where it was stopped."""
    method, seed = job
    (x, y), (x_test, y_test) = experiment.pool(), experiment.test()
    learner = ActiveLearner(
        experiment.model(seed),
        x,
        acquisition=METHODS[method],
        n_per_step=N_PER_STEP,
        n_candidates=experiment.n_candidates,
        evaluate=lambda model: accuracy(model, x_test, y_test),
        seed=seed,
        path=folder and folder / f"{experiment.name}_{method}_{seed}.json",
    )
    if not len(learner.rows):
        rows = balanced(y, seed)
        learner.tell(rows, y[rows])
    target = experiment.targets[-1] if experiment.ends_at_target else None
    learner.run(lambda rows: y[rows], n_labels=experiment.n_labels, target=target)
    return points(method, seed, learner.curve)


def balanced(y: Array, seed: int) -> Array:
    """Two rows of each digit at random: the labels that all methods start from."""
    generator = np.random.default_rng(seed)
    each = N_START // 10
    return np.concatenate(
        [generator.choice(np.flatnonzero(y == k), each, False) for k in range(10)]
    )


def accuracy(model: Any, x: Any, y: Array) -> float:
    """Share of right answers."""
    own = getattr(model, "accuracy", None)
    return float(own(x, y)) if own else float(model.score(x, y))


def points(method: str, seed: int, curve: LearningCurve) -> list[Point]:
    """A curve as records."""
    pairs = zip(curve.n_labels, curve.score, strict=True)
    return [Point(method, seed, n, score) for n, score in pairs]


def curves(records: Sequence[Point]) -> Found:
    """Records as curves, those of a method together."""
    found: dict[tuple[str, int], list[Point]] = {}
    for record in records:
        found.setdefault((record.method, record.seed), []).append(record)
    grouped: Found = {}
    for (method, _), run_points in found.items():
        curve = LearningCurve(
            tuple(p.n_labels for p in run_points), tuple(p.accuracy for p in run_points)
        )
        grouped.setdefault(method, []).append(curve)
    return grouped


def mean_needed(runs: Sequence[LearningCurve], target: float) -> float | None:
    """Mean number of labels over the runs, if all got there."""
    needed = [curve.labels_needed(target) for curve in runs]
    known = [n for n in needed if n is not None]
    return float(np.mean(known)) if len(known) == len(needed) else None


def count_table(found: Found, targets: Sequence[float]) -> str:
    """Labels needed for each target: each run, and their mean."""
    head, rows = ["method"], []
    for target in targets:
        head += [f"{target:.0%}: runs", f"{target:.0%}: mean"]
    for method, runs in found.items():
        cells = [method]
        for target in targets:
            each = [curve.labels_needed(target) for curve in runs]
            mean = mean_needed(runs, target)
            cells.append(", ".join("–" if n is None else str(n) for n in each))
            cells.append("–" if mean is None else f"{mean:.0f}")
        rows.append(cells)
    return markdown_table(head, rows)


def verdicts(found: Found, targets: Sequence[float]) -> list[str]:
    """Whether each method needs fewer labels than random, as the numbers say."""
    said = []
    for method, runs in found.items():
        if method == "random":
            continue
        for target in targets:
            ours, theirs = (mean_needed(r, target) for r in (runs, found["random"]))
            if ours is None or theirs is None:
                said.append(f"{method}, {target:.0%}: not all runs got there.")
                continue
            word = "fewer" if ours < theirs else "not fewer"
            said.append(
                f"{method} needs {word} labels than random for {target:.0%}: "
                f"{ours:.0f} against {theirs:.0f}."
            )
    return said


@house_style()
def draw(found: Found, targets: Sequence[float]) -> Figure:
    """Accuracy over labels: thin lines are runs, thick ones means of all runs."""
    figure, grid = panels(height=3.2)
    axes = grid[0, 0]
    for k, (method, runs) in enumerate(found.items()):
        _draw_method(axes, k, method, runs)
    for target in targets:
        axes.axhline(target, color="0.6", linewidth=0.8, zorder=0)
    name_axes(axes, "Active learning from 20 labels", "labels", "test accuracy")
    axes.set_ylim(bottom=0.6)
    axes.legend(loc="lower right")
    return figure


def _draw_method(axes: Axes, k: int, method: str, runs: list[LearningCurve]) -> None:
    for curve in runs:
        axes.plot(curve.n_labels, curve.score, **line(k), alpha=0.25, linewidth=0.7)
    common = min(len(curve) for curve in runs)
    mean = np.mean([curve.score[:common] for curve in runs], axis=0)
    style = ink(k) | {"markevery": max(1, common // 10)}
    axes.plot(runs[0].n_labels[:common], mean, **style, label=method)


def page(experiment: Experiment, found: Found) -> str:
    """What was run and what came out."""
    settings = Convnet(0)
    return "\n\n".join(
        [
            "# Active learning on MNIST",
            "Made by "
            "`python examples/active_learning.py --mnist --output docs/results`.",
            f"A small convnet with dropout starts from {N_START} labels, two of each "
            f"digit, and asks for {N_PER_STEP} at a time, chosen among "
            f"{experiment.n_candidates} random images of a pool of 50,000. It is "
            f"trained from scratch in each step ({settings.n_steps} steps of Adam) and "
            f"scores candidates by {settings.n_draws} draws with shared masks. "
            f"{experiment.n_seeds} runs of each method; run k starts from the same "
            f"labels in all methods. Accuracy is that of the mean of 10 draws on the "
            f"10,000 test images; a run ends at {experiment.targets[-1]:.0%}. Settings "
            f"were chosen on training images outside the pool. Thin lines in the "
            f"figure are runs, thick ones means as far as all runs go.",
            "Labels needed to reach an accuracy for the first time:",
            count_table(found, experiment.targets),
            "\n".join(f"- {said}" for said in verdicts(found, experiment.targets)),
            "![Learning curves](active_learning.png)",
        ]
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Run the methods, print the counts, and write the files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--mnist", action="store_true", help="the full experiment")
    parser.add_argument("--output", type=Path, default=Path("outputs"))
    parser.add_argument("--runs", type=Path, help="where unfinished runs are kept")
    parser.add_argument("--workers", type=int, help="processes, by default all cores")
    options = parser.parse_args(argv)
    experiment = MNIST if options.mnist else DIGITS
    records = carry_out(experiment, options)
    found = curves(records)
    print(count_table(found, experiment.targets))
    print("\n".join(verdicts(found, experiment.targets)))
    figure = draw(found, experiment.targets)
    if options.mnist:
        (options.output / "active_learning.md").write_text(
            page(experiment, found) + "\n"
        )
    path = options.output / "active_learning.png"
    figure.savefig(path)
    print(path)


def carry_out(experiment: Experiment, options: argparse.Namespace) -> list[Point]:
    """All runs that are not in the records yet, those on several cores at once."""
    options.output.mkdir(parents=True, exist_ok=True)
    stored = options.output / "active_learning.csv"
    records = read_records(stored, Point) if options.mnist else []
    done = {(record.method, record.seed) for record in records}
    jobs = [(m, s) for m in METHODS for s in range(experiment.n_seeds)]
    jobs = [job for job in jobs if job not in done]
    folder = options.runs or options.output / "active_learning_runs"
    work = partial(run, experiment, folder if options.mnist else None)
    start = time.monotonic()
    for _, found in spread(work, jobs, options.workers):
        records += found
        last = found[-1]
        print(
            f"{last.method}, run {last.seed}: {last.accuracy:.1%} with "
            f"{last.n_labels} labels ({time.monotonic() - start:.0f} s)",
            flush=True,
        )
        if options.mnist:
            write_records(stored, records)
    return records


if __name__ == "__main__":
    main()
