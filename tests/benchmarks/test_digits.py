"""The digits over several seeds: it runs, and the docs quote what is stored."""

from pathlib import Path

import pytest

from benchmarks import bench_digits
from benchmarks.results import FOLDER

GOTCHAS = Path(__file__).parents[2] / "docs" / "gotchas.md"


def test_smoke_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_digits.main(["--quick", "--output", str(tmp_path)]) == 0
    assert "Digits of the demo" in capsys.readouterr().out
    rows = rows_of(tmp_path)
    assert [row[:2] for row in rows] == [["all but the first", "0"], ["the last", "0"]]


def test_the_docs_quote_the_stored_means() -> None:
    means = {row[0]: row[-1] for row in rows_of(FOLDER) if row[1] == "mean"}
    text = " ".join(GOTCHAS.read_text().split())
    for found in means.values():
        share, error = (round(float(part), 2) for part in found.split("±"))
        assert f"{share:.2f} ± {error:.2f}" in text
    assert len(means) == len(bench_digits.PLACES)


def rows_of(folder: Path) -> list[list[str]]:
    lines = (folder / "digits.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    return [row for row in cells if row and row[0] in bench_digits.PLACES]
