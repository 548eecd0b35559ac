"""Figure 4 of paper 001: softmax inputs and outputs of a LeNet for a turning digit."""

from dataclasses import dataclass
from pathlib import Path

from caveat.papers.lenet import NetJob, Store, load_images
from caveat.papers.mnist.figure import draw
from caveat.papers.mnist.measures import Measuring, measure
from caveat.papers.mnist.records import Numbers
from caveat.papers.mnist.report import render
from caveat.papers.mnist.rotation import SHOWN, angles, rotations, typical
from caveat.papers.mnist.scores import Answers
from caveat.papers.output import Output
from caveat.papers.records import write_records
from caveat.papers.workers import spread

__all__ = ["reproduce_mnist"]


@dataclass(frozen=True)
class Effort:
    """How much work to put in; ``n_images`` of each data set, None for all."""

    n_steps: int
    n_seeds: int
    n_draws: int
    n_images: int | None


FULL = Effort(n_steps=10_000, n_seeds=2, n_draws=100, n_images=None)
QUICK = Effort(n_steps=60, n_seeds=1, n_draws=20, n_images=100)


def reproduce_mnist(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Rerun figure 4 of paper 001 on MNIST, or on scikit-learn's digits.

    Parameters
    ----------
    output : Path
        Folder for ``mnist.csv``, ``.md`` and ``.png``; networks in its folder
        ``lenet`` are not trained again.
    quick : bool
        Few steps and images: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The page, Markdown.
    """
    files, effort = Output(output, "mnist", quick), QUICK if quick else FULL
    images = load_images()
    store = Store(output / "lenet", images.name)
    nets = [NetJob("end", effort.n_steps, seed) for seed in range(effort.n_seeds)]
    store.complete(nets, n_workers=n_workers)
    jobs = [Measuring(store, net, effort.n_draws, effort.n_images) for net in nets]
    found = [number for part in spread(measure, jobs, n_workers) for number in part]
    write_records(files.path("csv"), found)
    numbers = Numbers.of(found)
    shown = rotations(typical(images), SHOWN)
    answers = Answers.of(store.load(nets[0]), shown, n_draws=effort.n_draws, keep=True)
    page = render(numbers, images, effort.n_steps, effort.n_draws)
    return files.write(page, draw(shown, angles(SHOWN), answers, numbers))
