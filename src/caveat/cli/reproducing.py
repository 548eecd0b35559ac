"""`caveat reproduce`: the figures and tables of the papers."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import typer

from caveat.cli.app import app
from caveat.engines import Engine
from caveat.papers.catalogue import REPRODUCTIONS, Option, Reproduction

reproduce = typer.Typer(
    name="reproduce",
    help="The figures and tables of the papers, rerun.",
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
