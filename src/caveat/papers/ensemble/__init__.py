"""Section 4.2 of paper 000: many passes of one dropout network, or many networks."""

from functools import partial
from pathlib import Path

from caveat.papers.ensemble.comparison import (
    DROPOUT,
    PLAIN,
    Effort,
    Replicate,
    best,
    compare,
    trials,
    validate,
)
from caveat.papers.ensemble.figure import draw
from caveat.papers.ensemble.report import render
from caveat.papers.lenet import Store, load_images
from caveat.papers.output import Output
from caveat.papers.records import write_records
from caveat.papers.workers import spread

__all__ = ["reproduce_ensemble"]

FULL = Effort(10, 5, (1, 2, 5, 10, 20, 50, 100), None, None, 10_000)
QUICK = Effort(5, 2, (1, 2, 5, 10), 400, 1_000, 300)


def reproduce_ensemble(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Compare MC dropout with ensembles of equal training and of equal test cost.

    Parameters
    ----------
    output : Path
        Folder for ``ensemble.csv``, ``.md`` and ``.png``; networks in its folder
        ``lenet`` are not trained again.
    quick : bool
        Few images: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The page, Markdown.
    """
    files, effort = Output(output, "ensemble", quick), QUICK if quick else FULL
    images = load_images()
    store = Store(output / "lenet", images.name)
    tried = trials(effort)
    store.complete(tried, n_workers=n_workers)
    validation = validate(store, tried, effort)
    dropout, plain = (best(kinds, validation) for kinds in (DROPOUT, PLAIN))
    replicates = [
        Replicate(number, dropout, plain, effort)
        for number in range(effort.n_replicates)
    ]
    store.complete(
        [net for replicate in replicates for net in replicate.nets],
        n_workers=n_workers,
    )
    parts = spread(partial(compare, store), replicates, n_workers)
    results = [*validation, *(result for part in parts for result in part)]
    write_records(files.path("csv"), results)
    return files.write(render(results, images, effort), draw(results))
