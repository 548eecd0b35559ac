"""Table 1 of paper 001: nine regression sets, four protocols."""

from pathlib import Path

from caveat.papers.table1.figure import draw
from caveat.papers.table1.report import render
from caveat.papers.table1.runner import SETS, run_protocol

__all__ = ["SETS", "reproduce_table1"]


def reproduce_table1(
    output: Path,
    *,
    protocol: str = "paper",
    sets: str = "",
    splits: int | None = None,
    quick: bool = False,
    n_workers: int | None = None,
) -> str:
    """Run a protocol of Table 1 (or go on with it) and write table and figure.

    Parameters
    ----------
    output : Path
        Folder for ``table1_PROTOCOL.csv``, ``.md`` and ``.png``. Splits that the CSV
        file holds already are not run again.
    protocol : str
        ``"paper"``, ``"grid"``, ``"best"`` or ``"flagship"``.
    sets : str
        Short names with commas; by default all.
    splits : int, optional
        Only the first so many of each set.
    quick : bool
        Far fewer epochs and draws: a smoke test, in files of its own.
    n_workers : int, optional
        Processes, by default one per core.

    Returns
    -------
    str
        The rendered table, Markdown.
    """
    name = f"table1_{protocol}" + ("_quick" if quick else "")
    records = run_protocol(
        protocol,
        output / f"{name}.csv",
        sets=[name.strip() for name in sets.split(",")] if sets else SETS,
        n_splits=splits,
        quick=quick,
        n_workers=n_workers,
    )
    command = f"caveat reproduce table1 --protocol {protocol}"
    page = render(records, command + (" --quick" if quick else ""))
    (output / f"{name}.md").write_text(page)
    draw(records, output / f"{name}.png")
    return page
