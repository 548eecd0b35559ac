"""HTML as text: everything that comes from data is escaped here, and nowhere else."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from caveat.reports.glossary import GLOSSARY

LONGEST = 60  # characters of a name in the page; the whole stands in its title
_SPACE = "\u00a0"  # at which no line is broken
_HIDDEN = dict.fromkeys([*range(32), *range(0x7F, 0xA0), 0xFEFF, 0xFFFE, 0xFFFF], " ")
_HIDDEN |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], " ")
_HIDDEN |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")  # half a character


@dataclass(frozen=True)
class Cell:
    """What stands in a cell of a table, and what it is sorted by.

    Attributes
    ----------
    html : str
        Escaped.
    value : float or str, optional
        By which rows are sorted; none if the column is not.
    is_number : bool
        Whether it stands on the right.
    """

    html: str
    value: float | str | None = None
    is_number: bool = False


def text(value: Any) -> str:
    """Anything as text that is safe in an element and in a quoted attribute.

    Control characters, and those that turn the direction of writing, become blanks.
    """
    return escape(str(value).translate(_HIDDEN), quote=True)


def short(value: Any, longest: int = LONGEST) -> str:
    """The same, cut if it is long; the whole is one hover away."""
    whole = str(value)
    if len(whole) <= longest:
        return text(whole)
    more, start = text(whole[: longest + 24]), text(whole[: longest - 1])
    return f'<span title="{more}">{start}…</span>'


def term(name: str, shown: str | None = None) -> str:
    """A word of the glossary, with its meaning one hover or key away."""
    return hint(name if shown is None else shown, GLOSSARY[name])


def hint(shown: str, meaning: str) -> str:
    """Words whose meaning is one hover or key away, also without scripts."""
    return f'<abbr tabindex="0" title="{text(meaning)}">{text(shown)}</abbr>'


def number(value: float, digits: int = 3) -> str:
    """A number as people read it: three digits that count, no needless zeros."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0.0:
        return "0"
    size = abs(value)
    if size >= 1e7 or size < 1e-4:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        return _minus(f"{mantissa}e{int(exponent)}")
    decimals = max(0, digits - 1 - math.floor(math.log10(size)))
    return _minus(f"{value:,.{decimals}f}")


def percent(share: float, decimals: int = 1) -> str:
    """A share as a percentage; never rounded to 0 or 100 % if it is neither."""
    if math.isnan(share):
        return "–"
    least = 10.0 ** -(decimals + 2)
    if 0.0 < share < least:
        return f"under {100 * least:.{decimals}f}{_SPACE}%"
    if 1.0 - least < share < 1.0:
        return f"over {100 * (1 - least):.{decimals}f}{_SPACE}%"
    return _minus(f"{100.0 * share:.{decimals}f}{_SPACE}%")


def count(number_of: int, noun: str) -> str:
    """``1 row``, ``2,000 rows``."""
    return f"{number_of:,} {noun}" if number_of == 1 else f"{number_of:,} {noun}s"


def measured(value: float, unit: str) -> str:
    """A number with its unit, if it has one, on one line."""
    return f"{number(value)}{_SPACE}{unit}" if unit else number(value)


def numeric(value: float, shown: str | None = None) -> Cell:
    """A cell that holds a number."""
    return Cell(text(number(value) if shown is None else shown), value, True)


def words(value: Any, longest: int = 24) -> Cell:
    """A cell that holds text."""
    return Cell(short(value, longest), str(value)[:12])


def table(
    caption: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    identifier: str = "",
    sortable: bool = False,
) -> str:
    """A table with a caption and headings, which scrolls by itself if it is wide.

    Parameters
    ----------
    caption : str
        Plain text.
    headings : sequence of str
        HTML, such as of :func:`term`.
    rows : iterable of sequences of Cell
        As many cells as headings.
    identifier : str
        Its id, if it needs one.
    sortable : bool
        Whether the script lets readers sort it.

    Returns
    -------
    str
    """
    lines = [list(row) for row in rows]
    right = [bool(lines) and lines[0][k].is_number for k in range(len(headings))]
    head = "".join(
        f'<th scope="col"{" class=num" if aligned else ""}>{heading}</th>'
        for heading, aligned in zip(headings, right, strict=True)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in lines)
    marks = (f' id="{identifier}"' if identifier else "") + " data-sortable" * sortable
    name = text(caption)
    return (
        f'<div class="table"><p class="caption">{name}</p><div class="scroll" '
        f'tabindex="0" role="region" aria-label="{name}"><table{marks} '
        f'aria-label="{name}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        f"</table></div></div>"
    )


def _cell(cell: Cell) -> str:
    kind = " class=num" if cell.is_number else ""
    key = "" if cell.value is None else f' data-v="{text(cell.value)}"'
    return f"<td{kind}{key}>{cell.html}</td>"


def _minus(shown: str) -> str:
    return shown.replace("-", "−")
