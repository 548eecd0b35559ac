"""The table of the papers' claims in the README of a folder of results."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from caveat.errors import DataError
from caveat.papers.catalogue import REPRODUCTIONS, Protocol, Reproduction
from caveat.papers.claims import FAILS, HOLDS, OPEN, PARTLY, verdict_of
from caveat.papers.page import Claim, flow, table
from caveat.papers.runner import stored_parts, stored_records
from caveat.papers.stated import STATED, Stated
from caveat.papers.table1.claims import table1_claims
from caveat.papers.times import time_taken

BEGIN, END = (
    "<!-- claims: made by caveat reproduce claims -->",
    "<!-- end of claims -->",
)


def write_claims(folder: Path) -> str:
    """Renew the table between its two marks in README.md, and return it."""
    path = folder / "README.md"
    text = path.read_text() if path.exists() else ""
    if BEGIN not in text or END not in text:
        raise DataError(
            f"{path} should have the lines {BEGIN!r} and {END!r}, between which the "
            "table of claims stands. Add them, or name another folder by --output."
        )
    made = claims_table(folder)
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    path.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}")
    return made


def claims_table(folder: Path) -> str:
    """A row for each claim of the papers: on stored pages, of theory, and others."""
    found = [row for each in REPRODUCTIONS for row in _rows(each, folder)]
    found += [_stated(each) for each in STATED]
    found.sort(key=lambda row: row["paper"])
    return f"{_counted(found)}\n\n{table(found)}"


def _counted(rows: Sequence[dict[str, str]]) -> str:
    """How many claims have which verdict; reasons stand in brackets behind it."""
    verdicts = Counter(row["verdict"].split(" (")[0] for row in rows)
    parts = [f"{word}: {verdicts[word]}" for word in (HOLDS, PARTLY, FAILS, OPEN)]
    return f"{len(rows)} claims; {', '.join(parts)}."


def _rows(reproduction: Reproduction, folder: Path) -> Iterator[dict[str, str]]:
    for options in _all_options(reproduction):
        experiment = reproduction.experiment(folder, **options)
        parts = stored_parts(experiment)
        own = [part for part in parts if isinstance(part, Claim)]
        if options.get("protocol") is Protocol.paper:
            own += table1_claims(stored_records(experiment))
        page, picture = (experiment.path(ending).name for ending in ("md", "png"))
        for part in own:
            yield {
                "paper": _place(experiment.title),
                "claim": _cell(part.words),
                "verdict": verdict_of(part, parts),
                "shown by": f"[{page}]({page}), [figure]({picture})",
                "command": f"`{experiment.command}`",
                "CPU time": time_taken(experiment),
            }


def _stated(each: Stated) -> dict[str, str]:
    reason = f" ({each.reason})" if each.reason else ""
    return {
        "paper": each.paper,
        "claim": _cell(each.words),
        "verdict": _cell(each.verdict + reason),
        "shown by": f"`{each.test}`" if each.test else "-",
        "command": f"`pytest {each.test}`" if each.test else "-",
        "CPU time": "in `make test`" if each.test else "-",
    }


def _place(title: str) -> str:
    """Which paper a page is about and what of it, by its title."""
    found = re.search(r"paper (00\d)", title)
    part = re.search(
        r"([Ff]igures? [\dab]+(?: and \d)?|Table 1|Appendix D.1|section [\d.]+)", title
    )
    if not found or not part:
        raise DataError(
            f"the title of a page should name its paper and a figure, table or section "
            f"of it, got {title!r}. Add them to the experiment's title."
        )
    place = part[1].replace("Figure", "figure").replace("Appendix", "appendix")
    return f"{found[1]}, {place}"


def _cell(text: str) -> str:
    return flow(text).replace("|", "\\|")


def _all_options(reproduction: Reproduction) -> list[dict[str, Any]]:
    if reproduction.name != "table1":
        return [{}]
    return [{"protocol": protocol} for protocol in Protocol]
