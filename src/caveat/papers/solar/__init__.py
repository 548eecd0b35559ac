"""Appendix D.1 of paper 001: solar irradiance, its gaps interpolated."""

from pathlib import Path

from caveat.data import load_solar
from caveat.papers.output import Output
from caveat.papers.series.jobs import run_jobs
from caveat.papers.solar.figure import draw
from caveat.papers.solar.models import FULL, QUICK, jobs, series
from caveat.papers.solar.report import render

__all__ = ["reproduce_solar"]


def reproduce_solar(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Rerun appendix D.1 of paper 001 (or go on): nets and Gaussian processes.

    Parameters
    ----------
    output : Path
        Folder for ``solar.csv``, ``.md`` and ``.png``, and for the folder
        ``solar.nets`` of weights. Curves that the CSV file holds already are not
        computed again, and the training of a net goes on where its file ends.
    quick : bool
        Narrow nets and short training: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The page, Markdown.
    """
    files = Output(output, "solar", quick)
    effort = QUICK if quick else FULL
    data = load_solar()
    task = series(data, effort.every)
    todo = list(jobs(task, effort, files.path("nets")))
    points = run_jobs(files.path("csv"), todo, n_workers=n_workers)
    return files.write(render(points, data, effort), draw(points, data, effort.n_draws))
