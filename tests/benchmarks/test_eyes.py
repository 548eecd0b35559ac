"""The benchmark of the world runs, and stores what it says."""

from pathlib import Path

import pytest

from benchmarks import bench_eyes
from benchmarks.results import FOLDER


def test_smoke_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_eyes.main(["--quick", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "World-steps a second" in printed
    page = (tmp_path / "eyes.md").read_text()
    assert "`python -m benchmarks.bench_eyes --quick`" in page
    assert "| 10 |" in page and "| 1,000 |" not in page


def test_stored_figure_meets_the_goal() -> None:
    if not (FOLDER / "eyes.md").exists():
        pytest.skip("no stored results; made by `python -m benchmarks.bench_eyes`")
    rows = [line.split("|") for line in (FOLDER / "eyes.md").read_text().splitlines()]
    rates = {r[1].strip(): r[2].strip() for r in rows if len(r) == 4}
    assert int(rates["1,000"].replace(",", "")) >= bench_eyes.GOAL
