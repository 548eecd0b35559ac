"""The one way to run a reproduction: what is missing, then the page and the figure."""

import re
from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from caveat._progress import ProgressBar
from caveat.engines import Engine, spread
from caveat.errors import CaveatError, DataError, StoppedError
from caveat.papers.claims import in_a_line, opening
from caveat.papers.experiment import AnyExperiment
from caveat.papers.page import Part, judging
from caveat.papers.records import read_records, write_records
from caveat.papers.style import house_style
from caveat.papers.times import measured

Known = dict[Hashable, list[Any]]  # records by their key

_SMOKE = "A smoke test: too little was run to judge any claim by it."


def reproduce(
    experiment: AnyExperiment,
    *,
    n_workers: int | None = None,
    engine: Engine = Engine.local,
    address: str | None = None,
    progress: bool | None = None,
) -> str:
    """Run what the CSV file lacks, and write page and figure.

    Parameters
    ----------
    experiment : Experiment
        With the folder of its files.
    n_workers : int, optional
        Processes, by default one per core.
    engine : Engine
        Processes of this machine, or Ray.
    address : str, optional
        Of a Ray cluster; by default one is started on this machine.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    str
        The page, Markdown.
    """
    ran = complete(
        experiment,
        n_workers=n_workers,
        engine=engine,
        address=address,
        progress=progress,
    )
    records = stored_records(experiment)
    experiment.extras(records)
    page, figures = _made(experiment, records, _today() if ran else _told(experiment))
    experiment.path("md").write_text(page)
    for part, figure in figures.items():
        figure.savefig(experiment.path("png", part))
    return page


def complete(
    experiment: AnyExperiment,
    *,
    n_workers: int | None = None,
    engine: Engine = Engine.local,
    address: str | None = None,
    progress: bool | None = None,
) -> int:
    """Run the jobs whose records are missing, and say how many these were.

    The CSV file is rewritten after each, so that whoever stops it loses the jobs that
    were running; arguments are those of :func:`reproduce`.
    """
    known = {} if experiment.brief else _known(experiment)
    if experiment.brief:  # a cluster would take longer to start
        n_workers, engine, address = 1, Engine.local, None
    run = partial(
        spread, experiment.run, n_workers=n_workers, engine=engine, address=address
    )
    done: list[Any] = []
    with measured(experiment, done):
        while todo := _missing(experiment, known):
            with ProgressBar(f"{experiment.name}: jobs", len(todo), progress) as bar:
                try:
                    for job, records in run(todo):
                        known |= _by_key(experiment, records)
                        _check(experiment, job, known)
                        write_records(experiment.path("csv"), experiment.ordered(known))
                        done.append(job)
                        bar.advance()
                except KeyboardInterrupt:
                    raise StoppedError(_left(experiment)) from None
    return len(done)


def _left(experiment: AnyExperiment) -> str:
    """What a run that was stopped leaves behind, as it is on disk."""
    if experiment.brief:
        return "stopped; nothing was saved, as it takes seconds: run again"
    known = _known(experiment)
    todo = len(_missing(experiment, known))
    total = len(experiment.jobs([r for own in known.values() for r in own]))
    return f"saved {total - todo} of {total}; run again to go on"


def regenerate(experiment: AnyExperiment) -> tuple[str, dict[str, Figure]]:
    """Page and figures, by the part of their names, from the stored records.

    Nothing is computed. The day on the page is that of the stored page. Missing records
    are an error.
    """
    return _made(experiment, stored_records(experiment), _told(experiment))


def stored_parts(experiment: AnyExperiment) -> list[Part]:
    """The page from the stored records, in parts; nothing is computed."""
    return list(experiment.page(stored_records(experiment)))


def _made(
    experiment: AnyExperiment, records: list[Any], day: str
) -> tuple[str, dict[str, Figure]]:
    head = [f"# {experiment.title}", f"Made by `{experiment.command}`, {day}."]
    head += [_SMOKE] * experiment.quick
    with judging(not experiment.quick):
        parts = list(experiment.page(records))
    brief = experiment.in_brief(records)
    first = [in_a_line(parts, brief)] if brief else opening(parts)
    page = "\n\n".join([*head, *first, *map(str, parts)]) + "\n"
    with house_style():
        main = {"": experiment.figure(records)}
        return page, main | experiment.further_figures(records)


def stored_records(experiment: AnyExperiment) -> list[Any]:
    """The records of all jobs, read back; missing ones are an error."""
    known = _known(experiment)
    if missing := _missing(experiment, known):
        raise DataError(
            f"{experiment.path('csv')} should hold the records of all jobs; it lacks "
            f"{len(missing)}, the first is {missing[0]!r}. Run `{experiment.command}` "
            "with this folder as --output."
        )
    return experiment.ordered(known)


def _missing(experiment: AnyExperiment, known: Mapping[Hashable, list[Any]]) -> Any:
    found = [record for own in known.values() for record in own]
    return [j for j in experiment.jobs(found) if not experiment.is_done(j, known)]


class UnfinishedJobError(CaveatError, RuntimeError):
    """A job has not left the records that it is there for."""


def _check(experiment: AnyExperiment, job: Any, known: Known) -> None:
    """A job that leaves nothing behind would be run for ever."""
    if not experiment.is_done(job, known):
        raise UnfinishedJobError(
            f"{experiment.name}: the job {job!r} should leave records with the keys "
            f"{list(experiment.keys(job))!r}, and does not. Its run() must give them."
        )


def _known(experiment: AnyExperiment) -> Known:
    records = read_records(experiment.path("csv"), experiment.record)
    return _by_key(experiment, records)


def _by_key(experiment: AnyExperiment, records: Iterable[Any]) -> Known:
    found: Known = {}
    for record in records:
        found.setdefault(experiment.key(record), []).append(record)
    return found


def _told(experiment: AnyExperiment) -> str:
    """The day that the stored page names."""
    path = experiment.path("md")
    page = path.read_text() if path.exists() else ""
    told = re.search(r"^Made by .*?, (\d{4}-\d\d-\d\d)\.", page, re.MULTILINE)
    return told[1] if told else _today()


def _today() -> str:
    return datetime.now(UTC).date().isoformat()
