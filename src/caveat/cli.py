"""The command line: parse, call one public function, print."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from caveat._version import __version__
from caveat.errors import CaveatError

app = typer.Typer(
    name="caveat",
    help="Every prediction with its caveat: dropout as Bayesian inference.",
    no_args_is_help=True,
    add_completion=False,
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
    """A callback makes ``demo`` a command, although it is the only one."""


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
    from caveat.demo import run  # here: it brings matplotlib and scikit-learn

    run(output, quick=quick, seed=seed)


def main(argv: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : list of str, optional
        What stands after ``caveat``; by default the arguments of the process.

    Returns
    -------
    int
        The exit code: 0 if all went well, 2 for arguments that make no sense.
    """
    try:
        app(args=argv, prog_name="caveat")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except CaveatError as error:
        typer.echo(f"caveat: {error}", err=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
