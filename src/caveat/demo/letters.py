"""Pictures made of letters, for a terminal, a file or a pipe: 80 columns at most."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

_WIDTH = 60  # columns of a band


@dataclass(frozen=True)
class Band:
    """A predictive interval and what was observed."""

    name: str
    lower: float
    mean: float
    upper: float
    observed: float


def band_lines(bands: Sequence[Band], *, note: Callable[[Band], str]) -> list[str]:
    """A line each: ``name  (   o  x )   note``, all on one scale.

    Parameters
    ----------
    bands : sequence of Band
        At least one.
    note : callable
        What stands behind a band.
    """
    ends = [v for b in bands for v in (b.lower, b.upper, b.observed)]
    low, span = min(ends), max(ends) - min(ends)

    def column(value: float) -> int:
        return round((_WIDTH - 1) * (value - low) / span) if span else 0

    lines = []
    for band in bands:
        letters = [" "] * _WIDTH
        left, right = column(band.lower), column(band.upper)
        letters[left : right + 1] = "-" * (right - left + 1)
        marks = {"(": band.lower, ")": band.upper, "o": band.mean, "x": band.observed}
        for letter, value in marks.items():
            letters[column(value)] = letter
        lines.append(f"{band.name:>6}  {''.join(letters)}  {note(band)}")
    return lines


def bar(share: float, width: int = 20) -> str:
    """A share from 0 to 1 as a bar of up to ``width`` letters."""
    return "#" * round(width * share)
