"""docs/evaluation.md and examples/calibration.py run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

from tests.pages import assert_as_shown, run_page, shown_of

ROOT = Path(__file__).parents[2]


def test_the_page_runs():
    names = run_page("docs/evaluation.md")
    assert names["report"]["accuracy"].value > 0.7
    assert names["calibration"].after >= names["calibration"].before


def test_the_example_runs(tmp_path):
    script, picture = ROOT / "examples" / "calibration.py", tmp_path / "new" / "a.png"
    done = subprocess.run(
        [sys.executable, "-W", "error", script, picture],
        capture_output=True,
        text=True,
        check=True,
    )
    assert picture.stat().st_size > 10_000
    assert "temperature: " in done.stdout and "AUROC of errors" in done.stdout
    found = re.search(r"coverage of 90% intervals +([\d.]+) .* ([\d.]+) ±", done.stdout)
    assert found is not None
    before, after = map(float, found.groups())
    assert before < after and abs(after - 0.9) < abs(before - 0.9)
    said = done.stdout.replace(f"{picture}\n", "")
    assert_as_shown(said, shown_of("docs/evaluation.md", "examples/calibration.py"))
