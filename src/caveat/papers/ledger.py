"""The table of the papers' claims in the README of a folder of results."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from caveat.errors import DataError
from caveat.papers.catalogue import REPRODUCTIONS, Protocol, Reproduction
from caveat.papers.claims import verdict_of
from caveat.papers.page import Claim, flow, table
from caveat.papers.runner import stored_parts

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
    """A row for each claim on the stored pages of a folder."""
    return table(row for each in REPRODUCTIONS for row in _rows(each, folder))


def _rows(reproduction: Reproduction, folder: Path) -> Iterator[dict[str, str]]:
    time = re.search(r"\(([^()]*)\)\.$", reproduction.summary)
    for options in _all_options(reproduction):
        experiment = reproduction.experiment(folder, **options)
        parts = stored_parts(experiment)
        page = experiment.path("md").name
        for part in parts:
            if isinstance(part, Claim):
                yield {
                    "claim": flow(part.words).replace("|", "\\|"),
                    "verdict": verdict_of(part, parts),
                    "page": f"[{page}]({page})",
                    "command": f"`{experiment.command}`",
                    "time": time[1] if time else "",
                }


def _all_options(reproduction: Reproduction) -> list[dict[str, Any]]:
    if reproduction.name != "table1":
        return [{}]
    return [{"protocol": protocol} for protocol in Protocol]
