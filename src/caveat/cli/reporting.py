"""`caveat report`: one page about a model and rows whose outcomes are known."""

from pathlib import Path
from typing import Annotated

import typer

from caveat.cli import options
from caveat.cli.app import app
from caveat.cli.running import running


@app.command()
def report(  # noqa: PLR0913, an option each
    model: options.Model,
    table: Annotated[
        str, typer.Argument(help=f"Rows it has not learned from. {options.TABLES}")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page, such as report.html.")
    ],
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    draws: options.Draws = None,
    seed: options.Seed = 0,
    unseen: options.Unseen = options.UnseenCategory.error,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
) -> None:
    """One HTML page about a model, by a table of known outcomes.

    Are its intervals true, what would deferring buy, which rows need a person?
    The page loads nothing, and can be sent around.
    """
    from caveat._drafts import checked_output
    from caveat.files import load_frame
    from caveat.frames import Dialect
    from caveat.reports import report_table

    with running():
        checked_output(output, model, table)
        made = report_table(
            load_frame(model),
            table,
            dialect=Dialect(format, delimiter, encoding),
            n_draws=draws,
            seed=seed,
            unseen=unseen.value,
            title=title,
            about={"command": f"caveat report {model} {table} -o {output}"},
        )
        made.save(output)
        for sentence in made.verdict:
            typer.echo(sentence)
        typer.echo(f"written: {output}")
