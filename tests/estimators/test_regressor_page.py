"""docs/estimators.md and examples/first_regression.py run as they stand."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import run_page

ROOT = Path(__file__).parent.parent.parent


def test_the_page_runs():
    run_page("docs/estimators.md")


def test_the_example_runs(tmp_path):
    script, picture = ROOT / "examples" / "first_regression.py", tmp_path / "a.png"
    done = subprocess.run(
        [sys.executable, script, picture, "--quick"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert picture.stat().st_size > 10_000
    assert "chosen drop rate" in done.stdout and "  90%" in done.stdout


@pytest.mark.parametrize("name", ["regressor", "classifier", "pbp"])
def test_docstrings(name):
    module = importlib.import_module(f"caveat.estimators.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0
