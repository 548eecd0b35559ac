"""`caveat audit`: where a network draws noise."""

from pathlib import Path
from typing import Annotated

import typer

from caveat.cli.app import app
from caveat.cli.running import running


@app.command()
def audit(
    build: Annotated[
        str,
        typer.Argument(
            help="package.module:function that returns a network, or a network and "
            "inputs for it."
        ),
    ],
    weights: Annotated[
        Path | None, typer.Option(help="Its weights, safetensors.", dir_okay=False)
    ] = None,
    shape: Annotated[
        list[str],
        typer.Option(help="Of a random input, rows first, as 4,3,32,32."),
    ] = [],  # noqa: B006
) -> None:
    """List every place where a network draws noise.

    With its kind, its rate, the shape of its mask, and whether it fires in eval.
    """
    from rich.console import Console

    from caveat.files.auditing import audit_built

    with running():
        Console().print(audit_built(build, weights=weights, shapes=shape))
