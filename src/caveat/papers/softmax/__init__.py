"""Figure 1 of paper 001: softmax with and without the uncertainty of its input."""

from pathlib import Path

from caveat.papers.output import Output, write_records
from caveat.papers.softmax.figure import draw
from caveat.papers.softmax.functions import all_points
from caveat.papers.softmax.report import render

__all__ = ["reproduce_softmax"]

_N_SETS, _N_DRAWS = 20, 1000
_N_SETS_QUICK, _N_DRAWS_QUICK = 3, 200


def reproduce_softmax(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Compute what figure 1 of paper 001 sketches.

    Parameters
    ----------
    output : Path
        Folder for ``softmax.csv``, ``.md`` and ``.png``.
    quick : bool
        Few data sets and draws: a smoke test, in files of its own.
    n_workers : int, optional
        Not used: it takes seconds.

    Returns
    -------
    str
        The page, Markdown.
    """
    files = Output(output, "softmax", quick)
    sizes = (_N_SETS_QUICK, _N_DRAWS_QUICK) if quick else (_N_SETS, _N_DRAWS)
    points = all_points(*sizes)
    write_records(files.path("csv"), points)
    return files.write(render(points, sizes[1]), draw(points))
