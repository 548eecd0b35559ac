"""`caveat demo`: what the library does, in two minutes."""

from pathlib import Path
from typing import Annotated

import typer

from caveat.cli import options
from caveat.cli.app import app


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option(help="Folder for figures and numbers.", file_okay=False)
    ] = Path("outputs/demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small nets, in some seconds.")
    ] = False,
    seed: options.Seed = 0,
) -> None:
    """CO2 extrapolated and a digit rotated, with doubt (two minutes)."""
    from caveat.demo import run  # here: it brings torch

    run(output, quick=quick, seed=seed)
