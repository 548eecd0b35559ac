"""The report as one HTML page: saved as a file, shown in a notebook."""

import os
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import final
from uuid import uuid4

from caveat.errors import DataError


@final
@dataclass(frozen=True, repr=False)
class HTMLReport:
    """One self-contained page; nothing is loaded from elsewhere.

    Attributes
    ----------
    title : str
        Of the page.
    html : str
        The whole page.
    verdict : tuple of str
        Its three sentences, as plain text.
    """

    title: str
    html: str
    verdict: tuple[str, ...]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page; the file is there when it is complete, and not before.

        Parameters
        ----------
        path : str or path
            Such as ``"report.html"``; a file of that name is replaced.

        Returns
        -------
        pathlib.Path
            Where it is.
        """
        place = Path(path)
        part = place.with_name(f".{place.name}.{uuid4().hex[:8]}.part")
        try:
            part.write_text(self.html, encoding="utf-8")
            part.replace(place)
        except OSError as error:
            raise DataError(
                f"The report could not be written to {str(place)!r}: {error.strerror}. "
                f"Name a file in a folder that exists and can be written to."
            ) from error
        finally:
            part.unlink(missing_ok=True)
        return place

    def __str__(self) -> str:
        return "\n".join([self.title, *(f"  {line}" for line in self.verdict)])

    def __repr__(self) -> str:
        size = len(self.html.encode()) / 1000
        return f"{self}\n  ({size:.0f} kB; .save('report.html') writes it)"

    def _repr_html_(self) -> str:
        """For a notebook: a frame that can reach nothing outside of it."""
        return (
            f'<iframe sandbox="allow-scripts" title="{escape(self.title)}" '
            f'style="width:100%;height:80vh;border:1px solid #8884;border-radius:6px" '
            f'srcdoc="{escape(self.html)}"></iframe>'
        )
