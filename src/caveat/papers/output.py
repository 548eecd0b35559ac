"""What a reproduction leaves in its folder: records in CSV, a page and a figure."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


@dataclass(frozen=True)
class Output:
    """The files of one reproduction: NAME.csv, NAME.md and NAME.png.

    Attributes
    ----------
    folder : Path
        Made when the first file is written.
    name : str
        Of the command, as in ``caveat reproduce NAME``.
    quick : bool
        Whether this is a smoke test, which has files of its own, NAME_quick.
    """

    folder: Path
    name: str
    quick: bool

    @property
    def command(self) -> str:
        """What makes these files."""
        return f"caveat reproduce {self.name}" + (" --quick" if self.quick else "")

    def path(self, ending: str) -> Path:
        """The file that ends so."""
        return self.folder / f"{self.name}{'_quick' if self.quick else ''}.{ending}"

    def write(self, parts: Iterable[str], figure: Figure) -> str:
        """Write page and figure; the page is the title and other parts, and given back.

        Parameters
        ----------
        parts : iterable of str
            The title, then paragraphs and tables in Markdown.
        figure : Figure
            Becomes a PNG file.

        Returns
        -------
        str
            The page.
        """
        title, *rest = parts
        day = datetime.now(UTC).date().isoformat()
        head = [f"# {title}", f"Made by `{self.command}`, {day}."]
        if self.quick:
            head.append("A smoke test: too little was run to judge any claim by it.")
        page = "\n\n".join([*head, *rest]) + "\n"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path("md").write_text(page)
        figure.savefig(self.path("png"))
        return page


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_records(path: Path, records: Sequence[R]) -> None:
    """Write records of one kind as CSV, in place of what the file held.

    Parameters
    ----------
    path : Path
        Of the file; it is complete at any time, whenever the program is stopped.
    records : sequence of dataclass instances
        At least one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    with draft.open("w", newline="") as file:
        names = [field.name for field in fields(records[0])]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_rounded(asdict(record)) for record in records)
    draft.replace(path)


def read_records(path: Path, kind: type[R]) -> list[R]:
    """Records that :func:`write_records` wrote; none if there is no such file."""
    if not path.exists():
        return []
    types: dict[str, Any] = {field.name: field.type for field in fields(kind)}
    with path.open(newline="") as file:
        return [
            kind(**{name: types[name](row[name]) for name in types})
            for row in csv.DictReader(file)
        ]


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
