"""Figures, where they can be drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from caveat._optional import require
from caveat.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save(path: Path, draw: Callable[[], "Figure"]) -> Path | None:
    """Draw, write the file and return its path; None if matplotlib is not there."""
    try:
        require("matplotlib", extra="plot")
    except MissingExtraError:
        return None
    draw().savefig(path, dpi=200)
    return path
