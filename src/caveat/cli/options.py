"""Options that several commands share, each declared once."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from caveat.engines import Engine as Engines

TABLES = "CSV, Parquet, Arrow or JSON lines; - is standard input."


class UnseenCategory(StrEnum):
    """Of `caveat predict`, `report` and `score`."""

    error = "error"
    missing = "missing"


Model = Annotated[Path, typer.Argument(help="A model file of `caveat fit`.")]
Seed = Annotated[
    int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same numbers.")
]
Level = Annotated[float, typer.Option(min=0.0, max=1.0, help="Of the intervals.")]
Draws = Annotated[int | None, typer.Option(min=2, help="Draws for each row.")]
Tolerance = Annotated[
    float | None,
    typer.Option(help="Draw until the error is this part of the spread."),
]
Keep = Annotated[bool, typer.Option("--keep", help="Keep the columns of the table.")]
Unseen = Annotated[
    UnseenCategory, typer.Option(help="What a category is that fit has not seen.")
]
Format = Annotated[
    str | None, typer.Option(help="csv, parquet, arrow or jsonl; else by the name.")
]
Delimiter = Annotated[
    str | None, typer.Option(help="Of CSV; else a comma, of .tsv a tab.")
]
Encoding = Annotated[str, typer.Option(help="Of CSV.")]
Engine = Annotated[Engines, typer.Option(help="Processes of this machine, or Ray.")]
Workers = Annotated[int | None, typer.Option(min=1, help="By default one per core.")]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster; else one is started here.")
]


def not_both(draws: int | None, tolerance: float | None) -> None:
    """Of the two, one decides how many draws there are."""
    if draws is not None and tolerance is not None:
        raise typer.BadParameter("--draws and --tolerance cannot both be given.")
