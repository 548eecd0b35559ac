"""The command line: parse, call one public function, print."""

import inspect
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from caveat._version import __version__
from caveat.errors import CaveatError, StoppedError
from caveat.papers.catalogue import REPRODUCTIONS, Option, Reproduction

_INTERRUPTED = 130  # the exit code that shells know for Ctrl-C
_HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="caveat",
    help="Every prediction with its caveat: dropout as Bayesian inference.",
    no_args_is_help=True,
    add_completion=False,
    context_settings=_HELP,  # for all commands below it
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"caveat {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="The version."
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for figures and numbers.", file_okay=False)
    ] = Path("outputs/demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small nets, in some seconds.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same numbers.")
    ] = 0,
) -> None:
    """CO2 extrapolated and a digit rotated, with their uncertainty (two minutes)."""
    from caveat.demo import run  # here: it brings torch

    run(output, quick=quick, seed=seed)


reproduce = typer.Typer(
    name="reproduce",
    help="The figures and tables of the papers, rerun beside the published numbers.",
    no_args_is_help=True,
)
app.add_typer(reproduce)


_COMMON = (
    Option("quick", bool, False, "A smoke test, under a minute or two."),
    Option("workers", int | None, None, "Processes, by default one per core.", least=1),
)


def _parameter(option: Option) -> inspect.Parameter:
    asked = typer.Option(
        f"--{option.name}", help=option.text, min=option.least, file_okay=False
    )
    kind: Any = Annotated[option.kind, asked]
    named = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(
        option.name, named, default=option.default, annotation=kind
    )


def _offer(reproduction: Reproduction) -> None:
    def command(**given: Any) -> None:
        output, quick, workers = (given.pop(k) for k in ("output", "quick", "workers"))
        page = reproduction.run(output, quick=quick, n_workers=workers, **given)
        _print_page(page)
        typer.echo(f"Written to {output}")

    folder = Option(
        "output",
        Path,
        Path("outputs") / reproduction.name,
        "Folder for page, figure and CSV.",
    )
    options = (*reproduction.options, *_COMMON, folder)
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_parameter(option) for option in options]
    )
    reproduce.command(reproduction.name, help=reproduction.summary)(command)


def _print_page(page: str) -> None:
    """Markdown in the width of the terminal, or 80 columns."""
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(page))


for _each in REPRODUCTIONS:
    _offer(_each)


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


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        What stands after ``caveat``; by default the arguments of the process.

    Returns
    -------
    int
        The exit code: 0 if all went well, 2 for arguments that make no sense, 130 if
        it was stopped by Ctrl-C.
    """
    try:
        app(args=argv, prog_name="caveat")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except StoppedError as stopped:
        typer.echo(f"caveat: {stopped}", err=True)
        return _INTERRUPTED
    except CaveatError as error:
        typer.echo(f"caveat: {error}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
