"""`caveat predict`: from rows and a model file to answers."""

from typing import Annotated

import typer

from caveat.cli import options
from caveat.cli.app import app
from caveat.cli.running import running


@app.command()
def predict(  # noqa: PLR0913, an option each
    model: options.Model,
    table: Annotated[str, typer.Argument(help=f"Rows to predict. {options.TABLES}")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where answers go, as the table.")
    ],
    level: options.Level = 0.9,
    draws: options.Draws = None,
    tolerance: options.Tolerance = None,
    seed: options.Seed = 0,
    keep: options.Keep = False,
    unseen: options.Unseen = options.UnseenCategory.error,
    format: options.Format = None,
    output_format: Annotated[
        str | None, typer.Option(help="Of the answers, as --format.")
    ] = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
) -> None:
    """Predict the rows of a table by a model file, in batches.

    Answers of a regression of y are y_mean, y_std, y_lower, y_upper and
    y_epistemic; of a classification y_label, y_prob_CLASS, y_entropy and
    y_mutual_information. The output appears only when it is complete.
    """
    options.not_both(draws, tolerance)
    from caveat._drafts import checked_output
    from caveat.files import load_frame
    from caveat.frames import Asking, Dialect, predict_file
    from caveat.predictive.base import count_of

    with running():
        asking = Asking.of(level=level, n_draws=draws, tolerance=tolerance, seed=seed)
        if output != "-":
            checked_output(output, model)
        done = predict_file(
            load_frame(model),
            table,
            output,
            asking=asking,
            keep=keep,
            unseen=unseen.value,
            reads=Dialect(format, delimiter, encoding),
            writes=Dialect(output_format, delimiter if output == "-" else None),
            progress=True,
        )
        for note in done.notes:
            typer.echo(f"caveat: note: {note}", err=True)
        if output != "-":
            typer.echo(f"written: {output}, {count_of(done.n_rows, 'row')}", err=True)
