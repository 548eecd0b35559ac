"""`caveat data`: the data sets of the papers."""

from typing import Annotated

import typer

from caveat.cli.app import app

data = typer.Typer(
    name="data", help="The data sets of the papers.", no_args_is_help=True
)
app.add_typer(data)


@data.command("list")
def list_data() -> None:
    """All data sets, where they were found, and their licences."""
    from rich.console import Console
    from rich.table import Table

    from caveat.data import list_datasets

    table = Table("name", "what", "licence", show_lines=True)
    for info in list_datasets():
        missing = "can be downloaded" if info.downloadable else "not here"
        found = f"in {info.present}" if info.present else missing
        table.add_row(info.name, f"{info.description}\n[dim]{found}[/]", info.licence)
    for column in table.columns:
        column.overflow = "fold"  # a path that is cut off is of no use
    Console().print(table)


@data.command("get")
def get_data(
    name: Annotated[str, typer.Argument(help="As `caveat data list` shows it.")],
) -> None:
    """Download a data set, if it is not there yet, and say where it is."""
    from caveat.data import fetch

    typer.echo(fetch(name, progress=None))
