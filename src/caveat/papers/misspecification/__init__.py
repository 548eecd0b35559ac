"""Figure 1b of paper 002: ridge and dropout when the model is wrong."""

from itertools import product
from pathlib import Path

from caveat._progress import ProgressBar
from caveat.papers.misspecification.figure import draw
from caveat.papers.misspecification.records import Record, summarise
from caveat.papers.misspecification.report import render
from caveat.papers.misspecification.simulation import (
    CONDITIONS,
    N_FEATURES,
    Part,
    run_part,
)
from caveat.papers.output import Output, read_records, write_records
from caveat.papers.workers import spread

__all__ = ["reproduce_misspecification", "run_panels"]

_N_SETS = 100_000
_N_SETS_QUICK = 2_500
_PER_PART = 1_000  # larger parts do not fit into the cache


def reproduce_misspecification(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Rerun figure 1b of paper 002 (or go on with it): 9 panels, 2 methods.

    Parameters
    ----------
    output : Path
        Folder for ``misspecification.csv``, ``.md`` and ``.png``. Panels that the CSV
        file holds already are not run again.
    quick : bool
        Few data sets: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The page, Markdown.
    """
    files = Output(output, "misspecification", quick)
    n_sets = _N_SETS_QUICK if quick else _N_SETS
    records = run_panels(files.path("csv"), n_sets=n_sets, n_workers=n_workers)
    return files.write(render(records), draw(records))


def run_panels(
    path: Path,
    *,
    n_sets: int,
    n_workers: int | None = None,
    progress: bool | None = None,
) -> list[Record]:
    """All panels with ``n_sets`` data sets each; those in the file are kept.

    Parameters
    ----------
    path : Path
        CSV file of records, rewritten after every panel.
    n_sets : int
        Data sets per panel.
    n_workers : int, optional
        Processes, by default one per core.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    list of Record
        Panel by panel.
    """
    panels = [(*panel, n_sets) for panel in product(CONDITIONS, N_FEATURES)]
    stored = read_records(path, Record)
    known = {panel: [r for r in stored if r.panel == panel] for panel in panels}
    parts = [part for p in panels if not known[p] for part in _parts(*p)]
    total = sum(part.n_sets for part in parts)
    answers = spread(run_part, parts, n_workers)
    with ProgressBar("Misspecification: data sets", total, progress) as bar:
        for panel in [p for p in panels if not known[p]]:
            own, sums = _parts(*panel), []
            for part in own:
                sums.append(next(answers))
                bar.advance(part.n_sets)
            known[panel] = summarise(own, sums)
            write_records(path, _in_order(known))
    return _in_order(known)


def _in_order(known: dict[tuple[str, int, int], list[Record]]) -> list[Record]:
    return [record for records in known.values() for record in records]


def _parts(condition: str, n_features: int, n_sets: int) -> list[Part]:
    starts = range(0, n_sets, _PER_PART)
    return [
        Part(condition, n_features, number, min(_PER_PART, n_sets - start))
        for number, start in enumerate(starts)
    ]
