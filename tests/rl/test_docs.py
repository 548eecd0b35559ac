"""The page docs/rl.md runs as it stands, and quotes what was stored."""

import doctest
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_page():
    result = doctest.testfile(
        str(DOCS / "rl.md"), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 20
    assert result.failed == 0


def test_page_quotes_the_stored_table():
    page, stored = ((DOCS / n).read_text() for n in ("rl.md", "results/rl.md"))
    rows = [line for line in stored.splitlines() if line.startswith("|")]
    assert len(rows) == 5
    assert "\n".join(rows) in page
