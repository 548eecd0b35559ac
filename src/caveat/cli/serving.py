"""`caveat serve`: model files behind HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from caveat.cli.app import app
from caveat.cli.running import running


@app.command()
def serve(
    models: Annotated[
        list[Path], typer.Argument(help="Model files, as of `caveat fit`.")
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="0 takes a free one.")
    ] = 8080,
    latency_budget: Annotated[
        str | None,
        typer.Option(help="As 50ms: as many draws as fit, if none are asked for."),
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Of a request.")] = 10_000,
    max_draws: Annotated[int, typer.Option(min=2, help="Of a row.")] = 10_000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="Tokens, one a line; requests must carry one.", dir_okay=False
        ),
    ] = None,
) -> None:
    """Answer requests over HTTP, with a page at / for people.

    Open Inference Protocol v2, or rows as JSON: /docs lists the routes. It stops
    on SIGTERM or Ctrl-C, after it has answered what it has accepted.
    """
    from caveat.serve import Limits, run
    from caveat.serve.running import milliseconds

    with running():
        budget = None if latency_budget is None else milliseconds(latency_budget)
        limits = Limits(max_rows=max_rows, max_draws=max_draws, budget=budget)
        run(models, host=host, port=port, limits=limits, token_file=token_file)
