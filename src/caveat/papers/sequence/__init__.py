"""LSTMs with one mask per sequence: do they over-fit less? (paper 000, section 4.2)"""

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from caveat._progress import ProgressBar
from caveat.papers.output import Output
from caveat.papers.records import read_records
from caveat.papers.resuming import complete
from caveat.papers.sequence.figure import draw
from caveat.papers.sequence.networks import VARIANTS
from caveat.papers.sequence.report import render
from caveat.papers.sequence.runs import Effort, Job, Record, run_job
from caveat.papers.sequence.texts import TASKS

__all__ = ["reproduce_sequence", "run_jobs"]

_EFFORT = Effort(epochs=15, n_draws=10, n_test_draws=50)
_EFFORT_QUICK = Effort(epochs=2, n_draws=3, n_test_draws=5, most_rows=300)
_RATES, _RATES_QUICK = (0.25, 0.5), (0.25,)
_SEEDS, _SEEDS_QUICK = (0, 1), (0,)


def reproduce_sequence(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Train LSTMs on film reviews and sentences (or go on with it), and compare them.

    Parameters
    ----------
    output : Path
        Folder for ``sequence.csv``, ``.md`` and ``.png``. Networks that the CSV file
        holds already are not trained again.
    quick : bool
        Few rows and epochs: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The page, Markdown.
    """
    files = Output(output, "sequence", quick)
    rates, seeds = (_RATES_QUICK, _SEEDS_QUICK) if quick else (_RATES, _SEEDS)
    jobs = list(_jobs(_EFFORT_QUICK if quick else _EFFORT, rates, seeds))
    records = run_jobs(files.path("csv"), jobs, n_workers=n_workers)
    return files.write(render(records), draw(records))


def run_jobs(
    path: Path,
    jobs: Sequence[Job],
    *,
    n_workers: int | None = None,
    progress: bool | None = None,
) -> list[Record]:
    """Train all networks; those in the file are kept.

    Parameters
    ----------
    path : Path
        CSV file of records, rewritten after every network.
    jobs : sequence of Job
        What to train.
    n_workers : int, optional
        Processes, by default one per core.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    list of Record
        Those of the jobs, in their order.
    """
    stored = read_records(path, Record)
    known = {job: [r for r in stored if r.key == job.key] for job in jobs}
    missing = [job for job, own in known.items() if not _complete(job, own)]
    bar = ProgressBar("Sequences: networks", len(missing), progress)
    return complete(path, known, missing, run_job, bar=bar, n_workers=n_workers)


def _jobs(
    effort: Effort, rates: Sequence[float], seeds: Sequence[int]
) -> Iterator[Job]:
    """Seed by seed; the longest first, so that all cores end at about the same time."""
    for seed, variant, task in product(seeds, reversed(VARIANTS), TASKS):
        for rate in rates if variant != "none" else (0.0,):
            yield Job(task, variant, rate, seed, effort)


def _complete(job: Job, records: Sequence[Record]) -> bool:
    """Whether they are those of just such a job."""
    tests = [r for r in records if r.part != "validation"]
    draws = {r.n_draws for r in tests}
    expected = {1 if job.variant == "none" else job.effort.n_test_draws}
    return len(records) == job.effort.epochs + len(tests) and draws == expected
