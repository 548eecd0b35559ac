"""The command line: parse, call one public function, print."""

import inspect
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from caveat._version import __version__
from caveat.engines import Engine
from caveat.errors import CaveatError, StoppedError
from caveat.papers.catalogue import REPRODUCTIONS, Option, Reproduction

_INTERRUPTED = 130  # the exit code that shells know for Ctrl-C
_TABLES = "CSV, Parquet, Arrow or JSON lines; - is standard input."
_Format = Annotated[
    str | None, typer.Option(help="csv, parquet, arrow or jsonl; else by the name.")
]
_Delimiter = Annotated[
    str | None, typer.Option(help="Of CSV; else a comma, of .tsv a tab.")
]
_Encoding = Annotated[str, typer.Option(help="Of CSV.")]


class Preset(StrEnum):
    """Of `caveat fit`."""

    auto = "auto"
    fast = "fast"
    best = "best"


class Unseen(StrEnum):
    """Of `caveat predict`."""

    error = "error"
    missing = "missing"


_HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="caveat",
    help="Every prediction with its caveat: dropout as Bayesian inference.",
    no_args_is_help=True,
    add_completion=False,
    context_settings=_HELP,  # for all commands below it
)


@contextmanager
def _running() -> Iterator[None]:
    """Long work: warnings as lines, Ctrl-C as an error, a closed pipe as the end."""
    with warnings.catch_warnings():
        warnings.showwarning = _warned
        try:
            yield
        except KeyboardInterrupt:
            raise StoppedError("stopped by Ctrl-C; nothing was written.") from None
        except BrokenPipeError:
            # Whoever reads has enough. What is left must not fail at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit from None


def _warned(message: Warning | str, *_: Any, **__: Any) -> None:
    typer.echo(f"caveat: warning: {message}", err=True)


def _pairs(texts: list[str]) -> dict[str, str]:
    """COLUMN=UNIT, several times."""
    found = {}
    for text in texts:
        name, sign, value = text.rpartition("=")
        if not (sign and name and value):
            raise typer.BadParameter(f"--unit must be COLUMN=UNIT. Got {text!r}.")
        found[name] = value
    return found


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


@app.command()
def fit(  # noqa: PLR0913, an option each
    table: Annotated[str, typer.Argument(help=f"Rows to learn from. {_TABLES}")],
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
    format: _Format = None,
    delimiter: _Delimiter = None,
    encoding: _Encoding = "utf-8",
) -> None:
    """Fit a model to a table, with columns as they come, and write a model file.

    Numbers, categories, booleans, dates and missing values are told apart; columns that
    are constant or name rows are left out. What was done is printed.
    """
    from caveat._drafts import checked_output
    from caveat.files import save
    from caveat.frames import Dialect, fit_file

    with _running():
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


@app.command()
def predict(  # noqa: PLR0913, an option each
    model: Annotated[Path, typer.Argument(help="A model file of `caveat fit`.")],
    table: Annotated[str, typer.Argument(help=f"Rows to predict. {_TABLES}")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="Where answers go, as the table.")
    ],
    level: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Of the intervals.")
    ] = 0.9,
    draws: Annotated[
        int | None, typer.Option(min=2, help="Draws for each row.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Draw until the error is this part of the spread."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same numbers.")
    ] = 0,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the columns of the table.")
    ] = False,
    unseen: Annotated[
        Unseen, typer.Option(help="What a category is that fit has not seen.")
    ] = Unseen.error,
    format: _Format = None,
    output_format: Annotated[
        str | None, typer.Option(help="Of the answers, as --format.")
    ] = None,
    delimiter: _Delimiter = None,
    encoding: _Encoding = "utf-8",
) -> None:
    """Predict the rows of a table by a model file, in batches.

    Answers of a regression of y are y_mean, y_std, y_lower, y_upper and y_epistemic; of
    a classification y_label, y_prob_CLASS, y_entropy and y_mutual_information. The
    output appears only when it is complete.
    """
    if draws is not None and tolerance is not None:
        raise typer.BadParameter("--draws and --tolerance cannot both be given.")
    from caveat._drafts import checked_output
    from caveat.files import load_frame
    from caveat.frames import Asking, Dialect, predict_file
    from caveat.predictive.base import count_of

    with _running():
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


@app.command()
def report(  # noqa: PLR0913, an option each
    model: Annotated[Path, typer.Argument(help="A model file of `caveat fit`.")],
    table: Annotated[
        str, typer.Argument(help=f"Rows it has not learned from. {_TABLES}")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page, such as report.html.")
    ],
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None,
    draws: Annotated[
        int | None, typer.Option(min=2, help="Draws for each row.")
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same numbers.")
    ] = 0,
    unseen: Annotated[
        Unseen, typer.Option(help="What a category is that fit has not seen.")
    ] = Unseen.error,
    format: _Format = None,
    delimiter: _Delimiter = None,
    encoding: _Encoding = "utf-8",
) -> None:
    """Report on a model and a table whose outcomes are known: one HTML page.

    Are its intervals true, what would deferring buy, which rows need a person? The page
    loads nothing, and can be sent around.
    """
    from caveat._drafts import checked_output
    from caveat.files import load_frame
    from caveat.frames import Dialect
    from caveat.reports import report_table

    with _running():
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


@app.command()
def score(  # noqa: PLR0913, an option each
    model: Annotated[Path, typer.Argument(help="A model file of `caveat fit`.")],
    tables: Annotated[Path, typer.Argument(help="A file, or a folder of them.")],
    output: Annotated[Path, typer.Argument(help="A folder, new or empty.")],
    engine: Annotated[
        Engine, typer.Option(help="Processes of this machine, or Ray.")
    ] = Engine.local,
    workers: Annotated[
        int | None, typer.Option(min=1, help="By default one per core.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run of this folder.")
    ] = False,
    address: Annotated[
        str | None, typer.Option(help="Of a Ray cluster; else one is started here.")
    ] = None,
    level: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Of the intervals.")
    ] = 0.9,
    draws: Annotated[
        int | None, typer.Option(min=2, help="Draws for each row.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Draw until the error is this part of the spread."),
    ] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Same seed, same numbers.")
    ] = 0,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the columns of the tables.")
    ] = False,
    unseen: Annotated[
        Unseen, typer.Option(help="What a category is that fit has not seen.")
    ] = Unseen.error,
    format: _Format = None,
    output_format: Annotated[
        str, typer.Option(help="csv, parquet, arrow or jsonl.")
    ] = "parquet",
    delimiter: _Delimiter = None,
    encoding: _Encoding = "utf-8",
) -> None:
    """Predict a folder of tables in pieces, on several processes or a Ray cluster.

    A piece is a row group of a Parquet file, or a whole file of another format; each
    becomes a file. Whoever stops it goes on with --resume. Any number of workers gives
    the same bytes.
    """
    if draws is not None and tolerance is not None:
        raise typer.BadParameter("--draws and --tolerance cannot both be given.")
    from caveat.frames import Asking, Dialect
    from caveat.predictive.base import count_of
    from caveat.scoring import UnitsFailedError
    from caveat.scoring import score as run

    with _running():
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
    """List every place where a network draws noise, and what it would do in eval."""
    from rich.console import Console

    from caveat.files.auditing import audit_built

    with _running():
        Console().print(audit_built(build, weights=weights, shapes=shape))


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
    """Answer requests over HTTP: Open Inference Protocol v2, JSON, and a page at /.

    Stops on SIGTERM or Ctrl-C, after it has answered what it has accepted.
    """
    from caveat.serve import Limits, run
    from caveat.serve.running import milliseconds

    with _running():
        budget = None if latency_budget is None else milliseconds(latency_budget)
        limits = Limits(max_rows=max_rows, max_draws=max_draws, budget=budget)
        run(models, host=host, port=port, limits=limits, token_file=token_file)


reproduce = typer.Typer(
    name="reproduce",
    help="The figures and tables of the papers, rerun beside the published numbers.",
    no_args_is_help=True,
)
app.add_typer(reproduce)


_COMMON = (
    Option("quick", bool, False, "A smoke test, under a minute or two."),
    Option("workers", int | None, None, "Processes, by default one per core.", least=1),
    Option("engine", Engine, Engine.local, "Processes of this machine, or Ray."),
    Option("address", str | None, None, "Of a Ray cluster; else one is started here."),
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
        output, workers = given.pop("output"), given.pop("workers")
        page = reproduction.run(output, n_workers=workers, **given)
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


@reproduce.command("claims", help="The table of all claims, from stored results.")
def _claims(
    output: Annotated[Path, typer.Option(help="The folder of results.")] = Path(
        "results"
    ),
) -> None:
    from caveat.papers.ledger import write_claims  # here: it brings matplotlib

    typer.echo(write_claims(output))


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
        The exit code: 0 if all went well (also if the reader of a pipe has gone), 1
        for an error that is told in words, 2 for arguments that make no sense, 130 if
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
