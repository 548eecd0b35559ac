"""The program itself: the app that commands are added to, and its options."""

from typing import Annotated

import typer

from caveat._version import __version__

app = typer.Typer(
    name="caveat",
    help="Every prediction with its caveat: dropout as Bayesian inference.",
    no_args_is_help=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # for all commands
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
