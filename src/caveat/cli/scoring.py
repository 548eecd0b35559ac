"""`caveat score`: folders of tables, on processes or a cluster."""

from pathlib import Path
from typing import Annotated

import typer

from caveat.cli import options
from caveat.cli.app import app
from caveat.cli.running import running
from caveat.engines import Engine as Engines


@app.command()
def score(  # noqa: PLR0913, an option each
    model: options.Model,
    tables: Annotated[Path, typer.Argument(help="A file, or a folder of them.")],
    output: Annotated[Path, typer.Argument(help="A folder, new or empty.")],
    engine: options.Engine = Engines.local,
    workers: options.Workers = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run of this folder.")
    ] = False,
    address: options.Address = None,
    level: options.Level = 0.9,
    draws: options.Draws = None,
    tolerance: options.Tolerance = None,
    seed: options.Seed = 0,
    keep: options.Keep = False,
    unseen: options.Unseen = options.UnseenCategory.error,
    format: options.Format = None,
    output_format: Annotated[
        str, typer.Option(help="csv, parquet, arrow or jsonl.")
    ] = "parquet",
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
) -> None:
    """Predict a folder of tables, on processes or a Ray cluster.

    A piece is a row group of a Parquet file, or a whole file of another format;
    each becomes a file. Whoever stops it goes on with --resume. Any number of
    workers gives the same bytes.
    """
    options.not_both(draws, tolerance)
    from caveat.frames import Asking, Dialect
    from caveat.predictive.base import count_of
    from caveat.scoring import UnitsFailedError
    from caveat.scoring import score as run

    with running():
        try:
            done = run(
                model,
                tables,
                output,
                asking=Asking.of(
                    level=level, n_draws=draws, tolerance=tolerance, seed=seed
                ),
                keep=keep,
                unseen=unseen.value,
                reads=Dialect(format, delimiter, encoding),
                output_format=output_format,
                engine=engine.value,
                n_workers=workers,
                address=address,
                resume=resume,
                progress=True,
            )
        except UnitsFailedError as error:
            for failure in error.failures:
                typer.echo(f"caveat: failed: {failure.why}", err=True)
            raise
        for line in done.lines():
            typer.echo(f"caveat: note: {line}", err=True)
        typer.echo(
            f"written: {output}, {count_of(done.n_rows, 'row')} in "
            f"{count_of(done.n_units, 'unit')}, {done.n_new} of them new",
            err=True,
        )
