"""How much CPU time reproductions took, measured as they ran."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from caveat.errors import StoppedError
from caveat.papers.experiment import AnyExperiment
from caveat.papers.records import read_records, write_records

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class RunTime:
    """One run, which may have been one of several that made the records."""

    name: str
    n_jobs: int
    seconds: float  # CPU time of this process and of those it started on this machine


@contextmanager
def measured(experiment: AnyExperiment, done: list[Any]) -> Iterator[None]:
    """Store the CPU time of what is inside, also if it is stopped.

    ``done`` holds the jobs that were finished. A run that is stopped before its first
    one counts, too: what it left half done may be gone on with. Smoke tests, and runs
    without jobs, leave nothing.
    """
    before, stopped = _now(), False
    try:
        yield
    except StoppedError:
        stopped = True
        raise
    finally:
        if (done or stopped) and not experiment.quick:
            _store(experiment, RunTime(experiment.name, len(done), _now() - before))


def _store(experiment: AnyExperiment, own: RunTime) -> None:
    path = _path(experiment.folder)
    others = read_records(path, RunTime)
    if experiment.brief:  # run anew each time
        others = [each for each in others if each.name != own.name]
    write_records(path, [*others, own])


def time_taken(experiment: AnyExperiment) -> str:
    """Minutes and seconds that its stored records took, or that nobody measured."""
    if "seconds" in {field.name for field in fields(experiment.record)}:
        records = read_records(experiment.path("csv"), experiment.record)
        return shown(experiment.cpu_seconds(records))
    runs = read_records(_path(experiment.folder), RunTime)
    own = [each for each in runs if each.name == experiment.name]
    records = read_records(experiment.path("csv"), experiment.record)
    if sum(each.n_jobs for each in own) < len(experiment.jobs(records)):
        return NOT_MEASURED
    return shown(sum(each.seconds for each in own))


def shown(seconds: float) -> str:
    """In hours, minutes and seconds.

    Examples
    --------
    >>> shown(221.4), shown(7.2), shown(7261)
    ('3 min 41 s', '7 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    if whole >= 60:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole} s" if whole else "under 1 s"


def _path(folder: Path) -> Path:
    return folder / "times.csv"


def _now() -> float:
    spent = os.times()
    own = spent.user + spent.system
    return own + spent.children_user + spent.children_system
