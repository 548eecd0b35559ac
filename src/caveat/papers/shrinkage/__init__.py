"""Figure 1a of paper 002: what dropout, ridge and lasso do to correlated weights."""

from pathlib import Path

from caveat.papers.output import Output, write_records
from caveat.papers.shrinkage.figure import draw
from caveat.papers.shrinkage.report import render
from caveat.papers.shrinkage.weights import (
    RATES,
    RATES_QUICK,
    AminoAcids,
    all_weights,
)

__all__ = ["reproduce_shrinkage"]


def reproduce_shrinkage(
    output: Path, *, quick: bool = False, n_workers: int | None = None
) -> str:
    """Rerun figure 1a of paper 002: paths of the weights on the amino acids.

    Parameters
    ----------
    output : Path
        Folder for ``shrinkage.csv``, ``.md`` and ``.png``.
    quick : bool
        Few points per path: a smoke test, in files of its own.
    n_workers : int, optional
        Not used: this takes seconds.

    Returns
    -------
    str
        The page, Markdown.
    """
    files = Output(output, "shrinkage", quick)
    data = AminoAcids.load()
    weights = all_weights(data, RATES_QUICK if quick else RATES)
    write_records(files.path("csv"), weights)
    return files.write(render(weights, data), draw(weights, data))
