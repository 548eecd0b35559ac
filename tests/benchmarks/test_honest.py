"""Honest errors on other networks: it runs, and tells right errors from wrong."""

from pathlib import Path

import pytest
import torch
from torch import nn

from benchmarks import bench_honest
from benchmarks.results import FOLDER
from tests.statistics import assert_mean_is

DOCS = Path(__file__).parents[2] / "docs"


def test_smoke_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_honest.main(["--quick", "--output", str(tmp_path)]) == 0
    assert "Honest errors, 4 seeds" in capsys.readouterr().out
    stored = (tmp_path / "honest.md").read_text()
    assert "| residual, 0.1 | 32 | 16 |" in stored


def test_the_design_quotes_what_is_stored() -> None:
    lines = (FOLDER / "honest.md").read_text().splitlines()
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in lines]
    rows = [row for row in cells if row and row[0] in bench_honest.CASES]
    means, largest = (sorted(float(row[n]) for row in rows) for n in (3, 4))
    text = " ".join((DOCS / "design.md").read_text().split())
    assert f"squares are {means[0]:.2f} to {means[-1]:.2f} on average" in text
    assert f"at most {largest[-1]:.2f} for one output" in text


class Drawn:
    """Means that are off by what their errors say, or by twice as much."""

    def __init__(self, model, seed, analytic):
        generator = torch.Generator().manual_seed(seed)
        self.mean = torch.randn(50, generator=generator) * 0.1
        self.mean_error = torch.full((50,), 0.1)
        self.mean_error[25:] = 0.05

    def regress(self, x, n_draws, precision):
        return self


def test_squares_are_one_for_right_errors_and_four_for_half_of_them(monkeypatch):
    monkeypatch.setattr(bench_honest, "MCDropout", Drawn)
    found = bench_honest.standardised_squares(
        nn.Identity(), torch.zeros(1), 64, 400, is_regression=True
    )
    for part, expected in zip(found.split(25), (1.0, 4.0), strict=True):
        assert_mean_is(part / expected, 1.0)
