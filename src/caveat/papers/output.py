"""What a reproduction leaves in its folder: records in CSV, a page and a figure."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from matplotlib.figure import Figure


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
