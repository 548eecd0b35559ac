"""What a page comes to: the verdicts in its words, counted."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from caveat.papers.page import Claim, Part, flow

HOLDS, FAILS, PARTLY, OPEN = "holds", "does not hold", "holds in part", "not judged"
_PLURAL = {HOLDS: "hold", FAILS: "do not hold", PARTLY: "hold in part", OPEN: OPEN}
LEAD = "Paper: "  # begins the first line of a page
_VERDICT = re.compile(
    r"(?P<only>\bholds\*\* on \w+ only)|\b(?P<word>does not hold|holds)\b"
    r"|(?<!\")\b(?P<open>not judged)\b",
    re.IGNORECASE,
)


def verdicts(text: str) -> Counter[str]:
    """How often a text says which verdict."""
    found = _VERDICT.finditer(text)
    return Counter(PARTLY if m["only"] else m[0].lower() for m in found)


def overall(found: Counter[str]) -> str:
    """One verdict of several: those left open count only if there is no other."""
    given = {word for word, n in found.items() if n and word != OPEN}
    if len(given) > 1:
        return PARTLY
    return given.pop() if given else OPEN


def verdict_of(claim: Claim, parts: Sequence[Part]) -> str:
    """That of a claim; if it says nothing itself, that of the rest of its page."""
    others = [part for part in parts if isinstance(part, str)]
    return overall(verdicts(claim.found or "\n".join(others)))


def opening(parts: Sequence[Part]) -> list[str]:
    """The first line of a page: none without a verdict, or if the page has its own."""
    found = _of_all(parts)
    if not found or str(parts[0]).startswith(LEAD):
        return []
    count = sum(isinstance(part, Claim) for part in parts)
    paper = f"{_several(count, 'claim')}, quoted below" if count else "numbers, below"
    tested = _several(found.total(), "comparison")
    if found.total() == 1:
        return [f"{LEAD}{paper}; ours: {tested}; {overall(found)}."]
    ours = ", ".join(
        f"{found[word]} {_PLURAL[word] if found[word] > 1 else word}"
        for word in (HOLDS, PARTLY, FAILS, OPEN)
        if found[word]
    )
    return [f"{LEAD}{paper}; ours: {tested}, of which {ours}; {overall(found)}."]


def _several(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def in_a_line(parts: Sequence[Part], in_brief: tuple[str, str]) -> str:
    """The first line of a page that says in brief what the paper says and what we do.

    The verdict is that of the whole page.
    """
    paper, ours = map(flow, in_brief)
    return f"{LEAD}{paper}; ours: {ours}; {overall(_of_all(parts))}."


def _of_all(parts: Iterable[Part]) -> Counter[str]:
    texts = (part.found if isinstance(part, Claim) else part for part in parts)
    return sum(map(verdicts, texts), Counter[str]())
