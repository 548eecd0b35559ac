"""The page docs/rl.md runs as it stands, and quotes what was stored."""

from pathlib import Path

from tests.pages import run_page

DOCS = Path(__file__).parents[2] / "docs"


def test_page():
    run_page("docs/rl.md")


def test_page_quotes_the_stored_table():
    page, stored = ((DOCS / n).read_text() for n in ("rl.md", "results/rl.md"))
    rows = [line for line in stored.splitlines() if line.startswith("|")]
    assert len(rows) == 7  # a head of two lines, five policies
    assert "\n".join(rows) in page
