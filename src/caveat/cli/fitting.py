"""`caveat fit`: from a table to a model file."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from caveat.cli import options
from caveat.cli.app import app
from caveat.cli.running import running


class Preset(StrEnum):
    """What the choice of a model may cost."""

    auto = "auto"
    fast = "fast"
    best = "best"


@app.command()
def fit(  # noqa: PLR0913, an option each
    table: Annotated[str, typer.Argument(help=f"Rows to learn from. {options.TABLES}")],
    target: Annotated[str, typer.Option("--target", "-t", help="Column to predict.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")],
    classify: Annotated[
        bool, typer.Option("--classify", help="The target holds labels.")
    ] = False,
    drop: Annotated[list[str], typer.Option(help="A column not to use.")] = [],  # noqa: B006
    use: Annotated[
        list[str], typer.Option(help="A column to use that looks like an identifier.")
    ] = [],  # noqa: B006
    category: Annotated[
        list[str], typer.Option(help="A column of codes that look like numbers.")
    ] = [],  # noqa: B006
    unit: Annotated[
        list[str], typer.Option(help="COLUMN=UNIT, kept with the model.")
    ] = [],  # noqa: B006
    missing: Annotated[
        list[str], typer.Option(help="A text that stands for nothing, such as '?'.")
    ] = [],  # noqa: B006
    decimal: Annotated[str, typer.Option(help="Decimal sign in CSV.")] = ".",
    preset: Annotated[
        Preset, typer.Option(help="What the choice of a model may cost.")
    ] = Preset.auto,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same model.")
    ] = 0,
    format: options.Format = None,
    delimiter: options.Delimiter = None,
    encoding: options.Encoding = "utf-8",
) -> None:
    """Fit a model to a table as it comes, and write a model file.

    Numbers, categories, booleans, dates and missing values are told apart;
    columns that are constant or name rows are left out. What was done is printed.
    """
    from caveat._drafts import checked_output
    from caveat.files import save
    from caveat.frames import Dialect, fit_file

    with running():
        checked_output(output, table)
        model = fit_file(
            table,
            target=target,
            dialect=Dialect(format, delimiter, encoding),
            classify=classify,
            drop=drop,
            use=use,
            categories=category,
            units=_pairs(unit),
            missing=missing,
            decimal=decimal,
            preset=preset.value,
            seed=seed,
            progress=True,
        )
        save(model, output)
        for line in model.lines():
            typer.echo(line)
        typer.echo(f"written: {output}")


def _pairs(texts: list[str]) -> dict[str, str]:
    """COLUMN=UNIT, several times."""
    found = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not (sign and name and value):
            raise typer.BadParameter(f"--unit must be COLUMN=UNIT. Got {text!r}.")
        found[name] = value
    return found
