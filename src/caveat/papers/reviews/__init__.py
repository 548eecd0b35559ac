"""Figure 2 of paper 002: praise or complaint, with and without dropout."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from caveat._progress import ProgressBar
from caveat.data.reviews import CATEGORIES
from caveat.papers.output import Output
from caveat.papers.records import read_records
from caveat.papers.resuming import complete
from caveat.papers.reviews.figure import draw
from caveat.papers.reviews.report import render
from caveat.papers.reviews.runs import VERSIONS, Job, Record, run_job

__all__ = ["reproduce_reviews", "run_splits"]

_N_REPEATS = 40
_N_REPEATS_QUICK = 2
_PRECISIONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4)
_PRECISIONS_QUICK = (1.0, 10.0, 100.0, 1e3)


def reproduce_reviews(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Rerun figure 2 of paper 002 (or go on with it): 4 categories, 2 versions.

    Parameters
    ----------
    output : Path
        Folder for ``reviews.csv``, ``.md`` and ``.png``. Splits that the CSV file
        holds already are not run again.
    quick : bool
        Few splits and precisions: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The page, Markdown.
    """
    files = Output(output, "reviews", quick)
    records = run_splits(
        files.path("csv"),
        n_repeats=_N_REPEATS_QUICK if quick else _N_REPEATS,
        precisions=_PRECISIONS_QUICK if quick else _PRECISIONS,
        n_workers=n_workers,
    )
    return files.write(render(records), draw(records))


def run_splits(
    path: Path,
    *,
    n_repeats: int,
    precisions: Sequence[float],
    categories: Sequence[str] = CATEGORIES,
    n_workers: int | None = None,
    progress: bool | None = None,
) -> list[Record]:
    """All splits with all precisions; those in the file are kept.

    Parameters
    ----------
    path : Path
        CSV file of records, rewritten after every split.
    n_repeats : int
        Random splits per category and version.
    precisions : sequence of float
        Values of lambda0.
    categories : sequence of str
        Of the products.
    n_workers : int, optional
        Processes, by default one per core.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    list of Record
        Those of the wanted splits and precisions.
    """
    wanted = tuple(precisions)
    splits = product(VERSIONS, categories, range(n_repeats))
    stored = read_records(path, Record)
    known = {
        job: [record for record in stored if _belongs(record, job)]
        for job in (Job(*split, wanted) for split in splits)
    }
    missing = [job for job, own in known.items() if len(own) < len(wanted)]
    bar = ProgressBar("Reviews: splits", len(missing), progress)
    return complete(path, known, missing, run_job, bar=bar, n_workers=n_workers)


def _belongs(record: Record, job: Job) -> bool:
    return record.split == job.split and record.prior_precision in job.precisions
