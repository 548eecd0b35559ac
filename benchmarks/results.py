"""One table, printed in the terminal and stored as markdown beside its data."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks import machine

FOLDER = Path(__file__).parent / "results"
WIDEST = 150
_FOLDERS = ("--output", "--cache")  # which say nothing about figures


@dataclass(frozen=True)
class Report:
    """A titled table of strings with remarks underneath."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = field(default=())

    def show(self, console: Console) -> None:
        """Print the table and its notes."""
        table = Table(title=self.title, title_justify="left", title_style="bold")
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        console.print(table)
        for note in self.notes:
            console.print(f"  {note}", highlight=False)
        console.print()

    def markdown(self) -> str:
        """Return the table and its notes as markdown."""
        lines = [f"## {self.title}", ""]
        lines += [_line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, "", *(f"- {note}" for note in self.notes), ""])


@dataclass(frozen=True)
class Provenance:
    """When, how and on what the figures were measured."""

    command: str
    date: str
    machine: dict[str, str | int]

    @classmethod
    def now(cls, module: str, argv: Sequence[str]) -> "Provenance":
        """Describe this very run of ``python -m <module>``."""
        command = shlex.join(["python", "-m", module, *_without_folders(argv)])
        date = datetime.now(UTC).strftime("%Y-%m-%d")
        return cls(command, date, machine.describe())

    def markdown(self) -> str:
        """Return one line for the head of a results file."""
        facts = ", ".join(f"{name} {value}" for name, value in self.machine.items())
        return f"`{self.command}`, {self.date}; {facts}.\n"


def console() -> Console:
    """Return a console wide enough for the tables, in a terminal or in a file."""
    found = Console()
    return found if found.width >= WIDEST else Console(width=WIDEST)


def store_markdown(
    path: Path, provenance: Provenance, reports: Sequence[Report]
) -> None:
    """Write the tables to a markdown file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    head = f"# {path.stem.capitalize()}\n\n{provenance.markdown()}"
    path.write_text("\n".join([head, *(report.markdown() for report in reports)]))


def store_json(path: Path, provenance: Provenance, **content: Any) -> None:
    """Write the raw figures to a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "command": provenance.command,
        "date": provenance.date,
        "machine": provenance.machine,
        **content,
    }
    path.write_text(json.dumps(record, indent=2) + "\n")


def _without_folders(argv: Sequence[str]) -> list[str]:
    """Leave out ``--output FOLDER`` and the like, which matter to nobody."""
    """Leave out ``--output FOLDER`` and the like: where a file lies is no matter."""
    kept: list[str] = []
    given = iter(argv)
    for word in given:
        if word in _FOLDERS:
            next(given, None)
        elif word.partition("=")[0] not in _FOLDERS:
            kept.append(word)
    return kept


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
