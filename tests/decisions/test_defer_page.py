"""docs/deciding.md, examples/defer.py and examples/conformal.py run as they stand."""

import re
import subprocess
import sys
from pathlib import Path

from tests.pages import assert_as_shown, run_page, shown_of

ROOT = Path(__file__).parents[2]


def run(name: str, picture: Path) -> str:
    """What an example prints, without a warning and but for its picture."""
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            ROOT / "examples" / f"{name}.py",
            picture,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert picture.stat().st_size > 10_000
    return done.stdout.replace(f"{picture}\n", "")


def test_deferring_and_conformal_sections_run():
    names = run_page("docs/deciding.md")
    assert names["policy"].met
    assert names["plausible"].shape == (697, 10)


def test_the_deferral_example_runs(tmp_path):
    printed = run("defer", tmp_path / "defer.png")
    assert "At most 2.00% of the accepted rows are wrong" in printed
    shares = [float(s) for s in re.findall(r"wrong among .* ([\d.]+)%", printed)]
    everybody, accepted, deferred = shares
    assert accepted < everybody < deferred
    assert "Not met: 6905 accepted rows" in printed
    assert_as_shown(printed, shown_of("docs/deciding.md", "examples/defer.py"))


def test_the_conformal_example_runs(tmp_path):
    printed = run("conformal", tmp_path / "conformal.png")
    shares = [float(s) for s in re.findall(r"  ([\d.]+)% +[\d.]+\n", printed)]
    own, scaled, quantiles = shares
    assert own < 82 < min(scaled, quantiles)
    mean = re.search(r"over 200 splits: ([\d.]+)%", printed)
    assert mean is not None and 86 < float(mean.group(1)) < 95
    assert_as_shown(printed, shown_of("docs/deciding.md", "examples/conformal.py"))
