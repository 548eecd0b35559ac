"""Section 4.2 of paper 000: dropout after every layer of a convnet needs averages."""

from dataclasses import dataclass
from pathlib import Path

from caveat.papers.convnet.features import feature_growth
from caveat.papers.convnet.figure import draw
from caveat.papers.convnet.report import render
from caveat.papers.lenet import DROPOUT, CurveJob, NetJob, Store, curves, load_images
from caveat.papers.output import Output
from caveat.papers.records import write_records

__all__ = ["reproduce_convnet"]


@dataclass(frozen=True)
class Effort:
    """How much work to put in; ``n_images`` to test on, None for all."""

    n_steps: int
    n_seeds: int
    sizes: tuple[int, ...]
    n_images: int | None


FULL = Effort(10_000, 2, (1, 2, 5, 10, 20, 50, 100), None)
QUICK = Effort(60, 1, (1, 2, 5, 10), 300)


def reproduce_convnet(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Compare LeNets with no dropout, dropout at the end, and dropout everywhere.

    Parameters
    ----------
    output : Path
        Folder for ``convnet.csv``, ``.md`` and ``.png``; networks in its folder
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
    files, effort = Output(output, "convnet", quick), QUICK if quick else FULL
    images = load_images()
    store = Store(output / "lenet", images.name)
    seeds = range(effort.n_seeds)
    nets = [NetJob(where, effort.n_steps, seed) for seed in seeds for where in DROPOUT]
    store.complete(nets, n_workers=n_workers)
    jobs = [
        CurveJob(
            store, net, effort.sizes if net.dropout != "none" else (), effort.n_images
        )
        for net in nets
    ]
    points = curves(jobs, n_workers=n_workers)
    write_records(files.path("csv"), points)
    last = [net for net in nets if net.dropout == "everywhere"]
    growth = [feature_growth(store.load(net), images.test) for net in last]
    return files.write(render(points, images, growth), draw(points))
