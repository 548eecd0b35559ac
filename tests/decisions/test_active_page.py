"""docs/active_learning.md runs as it stands, and quotes what was stored."""

from pathlib import Path

import pytest

from tests.pages import run_page

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "active_learning.md"
STORED = DOCS / "results" / "active_learning.md"


def test_page():
    run_page("docs/active_learning.md")


def test_quoted_numbers_are_the_stored_ones():
    if not STORED.exists():
        pytest.skip("docs/results/active_learning.md is absent: run the example")
    stored = STORED.read_text()
    lines = PAGE.read_text().splitlines()
    quoted = [line for line in lines if line.startswith(("| random", "| BALD"))]
    assert len(quoted) == 2
    for line in quoted:
        assert line in stored
