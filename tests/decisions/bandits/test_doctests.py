"""The examples in docstrings give what they say, and the page runs as it stands."""

import doctest
import importlib
from pathlib import Path

import matplotlib as mpl
import pytest

from tests.pages import run_page

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "thompson.md"
RESULTS = ROOT / "docs" / "results" / "bandits.md"
MODULES = [
    "thompson",
    "thompson_samplers",
    "bandits.agents",
    "bandits.annealing",
    "bandits.displays",
    "bandits.linear",
    "bandits.networks",
    "bandits.refitted",
    "bandits.runs",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    module = importlib.import_module(f"caveat.decisions.{name}")
    with mpl.rc_context({"backend": "agg"}):
        result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_page():
    with mpl.rc_context({"backend": "agg"}):
        run_page("docs/thompson.md")


def test_numbers_of_the_page_are_those_of_the_run():
    """Every row of a table with a ± on the page stands in the stored results."""
    rows = [line for line in PAGE.read_text().splitlines() if "±" in line]
    stored = RESULTS.read_text().splitlines()
    quoted = [row for row in rows if row.startswith("|")]
    assert len(quoted) > 10
    assert [row for row in quoted if row not in stored] == []
