"""Figure 1 of paper 001: the functions, their softmax, and the stored numbers."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from caveat.cli import main
from caveat.papers.records import read_records
from caveat.papers.softmax import (
    DROPOUT,
    EDGE,
    GRID,
    PROCESS,
    STAR,
    SoftmaxPlaces,
    SoftmaxPoint,
    labelled,
    log_odds,
    points_of,
)

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "softmax.csv"
needs_results = pytest.mark.skipif(
    not RESULTS.exists(), reason="needs results: caveat reproduce softmax"
)


@pytest.fixture(scope="module")
def points():
    return [p for model in (DROPOUT, PROCESS) for p in points_of(model, 2, 400)]


def test_labels_have_the_odds_they_are_drawn_with():
    sets = [labelled(seed) for seed in range(200)]
    x, y = (np.concatenate(column) for column in zip(*sets, strict=True))
    assert np.abs(x).max() <= EDGE
    chance = expit(log_odds(x))
    error = math.sqrt((chance * (1 - chance)).sum())
    assert abs((y - chance).sum()) < 5 * error
    right = x > 1.7
    assert y[right].mean() > 0.8  # class 1 is what is seen last


def test_every_model_is_asked_on_the_whole_grid(points):
    assert len(points) == 2 * 2 * len(GRID)
    assert GRID[-1] == STAR and GRID[0] == -STAR


def test_point_estimates_pass_through_the_softmax(points):
    for p in points:
        assert p.other_point == pytest.approx(1 / (1 + math.exp(p.function)))
        assert 0.0 <= p.other_mean <= 1.0
        assert 0.0 <= p.other_low <= p.other_high <= 1.0


def test_the_softmax_of_a_gaussian_is_averaged(points):
    """Against quadrature of E sigmoid(-f), f ~ N(mean, sd²)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    for p in points:
        if p.model == PROCESS and p.sd < 5.0:
            exact = expit(-(p.mean + p.sd * nodes)) @ weights / weights.sum()
            assert p.other_mean == pytest.approx(exact, abs=0.01)
            assert p.function == pytest.approx(p.mean, abs=1e-6)


def test_uncertainty_grows_away_from_the_data(points):
    for model in (DROPOUT, PROCESS):
        own = SoftmaxPlaces(points, model)
        assert own.star("sd").min() > 2 * own.inside("sd").mean()


def test_command_line(tmp_path):
    assert main(["reproduce", "softmax", "--quick", "--output", str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "3 data sets of 60 labels" in page
    assert page.count("The paper:") == 2
    assert (tmp_path / "softmax_quick.png").stat().st_size > 30_000
    assert len(
        read_records(tmp_path / "softmax_quick.csv", SoftmaxPoint)
    ) == 3 * 2 * len(GRID)


@needs_results
def test_stored_point_estimates_are_sure_and_functions_are_less_so():
    points = read_records(RESULTS, SoftmaxPoint)
    for model in (DROPOUT, PROCESS):
        own = SoftmaxPlaces(points, model)
        assert len(own.star("x")) == 20
        assert np.median(own.star("other_point")) < 1e-6
        less = own.star("other_mean") > own.star("other_point")
        assert less.mean() >= 0.95
        assert np.median(own.star("other_mean")) > 1e-4
    process = SoftmaxPlaces(points, PROCESS)
    assert np.median(process.star("other_mean")) >= 0.05
    assert np.median(process.star("other_high")) > 0.5
    dropout = SoftmaxPlaces(points, DROPOUT)
    assert np.median(dropout.ratios) > np.median(process.ratios)
