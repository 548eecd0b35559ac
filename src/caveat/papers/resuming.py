"""Long runs whose records are on disk after every job, and are not made twice."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from caveat._progress import ProgressBar
from caveat.papers.records import write_records
from caveat.papers.workers import spread

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

J = TypeVar("J")
R = TypeVar("R", bound="DataclassInstance")


def complete(
    path: Path,
    known: dict[J, list[R]],
    missing: Sequence[J],
    run: Callable[[J], list[R]],
    *,
    bar: ProgressBar,
    n_workers: int | None = None,
) -> list[R]:
    """Run the jobs whose records are missing; write all records after each.

    Parameters
    ----------
    path : Path
        CSV file of records.
    known : dict of job to list of records
        All jobs in their order, those that are missing with whatever there is.
    missing : sequence of jobs
        Those to run.
    run : callable
        A function of a module: the records of a job.
    bar : ProgressBar
        Advances by 1 for each job.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    list of records
        Those of all jobs, in their order.
    """
    found = dict(known)
    with bar:
        for job, records in zip(missing, spread(run, missing, n_workers), strict=True):
            found[job] = records
            write_records(path, [record for own in found.values() for record in own])
            bar.advance()
    return [record for own in found.values() for record in own]
