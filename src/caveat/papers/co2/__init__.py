"""Figures 2 and 3 of paper 001: CO2 at Mauna Loa, extrapolated."""

from pathlib import Path

from caveat.data import load_co2
from caveat.papers.co2.figure import draw
from caveat.papers.co2.models import FULL, QUICK, jobs, series
from caveat.papers.co2.report import render
from caveat.papers.output import Output
from caveat.papers.series.jobs import run_jobs

__all__ = ["reproduce_co2"]


def reproduce_co2(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Rerun figures 2 and 3 of paper 001 (or go on): nets, Gaussian processes, truth.

    Parameters
    ----------
    output : Path
        Folder for ``co2.csv``, ``.md`` and ``.png``, and for the folder ``co2.nets`` of
        weights. Curves that the CSV file holds already are not computed again, and
        the training of a net goes on where its file of weights ends.
    quick : bool
        Narrow nets and short training: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The page, Markdown.
    """
    files = Output(output, "co2", quick)
    effort = QUICK if quick else FULL
    data = load_co2()
    task = series(data, effort.every)
    todo = list(jobs(task, effort, files.path("nets")))
    points = run_jobs(files.path("csv"), todo, n_workers=n_workers)
    return files.write(render(points, data, effort), draw(points, data, effort.n_draws))
