"""What a page is made of: paragraphs, tables, lists, and claims with what was found."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from caveat.errors import ShapeError


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and what was found.

    Attributes
    ----------
    words : str
        Those of the paper.
    found : str
        What the numbers say, Markdown; empty if the rest of the page says it.
    lead, end : str
        Before and after the quoted words.
    """

    words: str
    found: str = ""
    lead: str = "The paper: "
    end: str = ""

    def __str__(self) -> str:
        quoted = f'{self.lead}"{self.words}"{self.end}'
        return f"{quoted}\n\n{self.found}" if self.found else quoted


Part = str | Claim


def claim(words: str, found: str, *, lead: str = "The paper: ", end: str = "") -> Claim:
    """A claim whose finding is one paragraph, however its lines are broken."""
    return Claim(flow(words), flow(found), lead, end)


def verdict(is_so: object) -> str:
    """Whether a claim holds, by the numbers, in bold letters."""
    return f"**{holds(is_so)}**"


def holds(is_so: object) -> str:
    """Whether a claim holds, by the numbers."""
    return judged("holds" if is_so else "does not hold")


# A page is text by the time it is known whose it is, and its verdicts are deep inside;
# so whether there are any is not passed through all that writes it.
_JUDGING = ContextVar("judging", default=True)

NOT_JUDGED = "not judged"


@contextmanager
def judging(is_on: bool) -> Iterator[None]:
    """Pages written inside have verdicts, or leave them open: a smoke test has none.

    What is left open outside stays open.
    """
    token = _JUDGING.set(is_on and _JUDGING.get())
    try:
        yield
    finally:
        _JUDGING.reset(token)


def judged(words: str) -> str:
    """A verdict in its words, or that there is none. All verdicts pass here."""
    return words if _JUDGING.get() else NOT_JUDGED


def flow(text: str) -> str:
    """A paragraph on one line, however its lines are broken in the source."""
    return " ".join(text.split())


def bullets(lines: Iterable[str]) -> str:
    """A list."""
    return "\n".join(f"- {flow(line)}" for line in lines)


def table(rows: Iterable[Mapping[str, object]]) -> str:
    """A table from rows that say what stands in which column.

    Parameters
    ----------
    rows : iterable of mappings
        At least one; all with the same columns in the same order.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> print(table({"T": n, "error": f"{1 / n:.2f}"} for n in (2, 4)))
    | T | error |
    | --- | --- |
    | 2 | 0.50 |
    | 4 | 0.25 |
    """
    all_rows = list(rows)
    head = list(all_rows[0])
    for row in all_rows:
        if list(row) != head:
            raise ShapeError(
                f"the rows of a table need the same columns; the first has {head}, "
                f"another {list(row)}"
            )
    return markdown_table(head, [[str(cell) for cell in r.values()] for r in all_rows])


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
