"""Arithmetic of the claims, the page, and the stored numbers."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caveat.cli import main
from caveat.papers.convnet.curves import STANDARD, CurvePoint, Growth
from caveat.papers.convnet.experiment import (
    ConvNet,
    Difference,
    between,
    gain,
    mean_of,
    select,
    sizes,
)
from caveat.papers.lenet import DROPOUT
from caveat.papers.records import read_records
from caveat.papers.runner import complete

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "convnet.csv"


POINT = CurvePoint("end", 10, 0, STANDARD, 1, 100, 0.02, 0.0, -0.1, 0.01, "3 5")


def test_gain_is_paired_by_image():
    """Of 100 images one is mended and none broken."""
    points = [POINT, replace(POINT, n_draws=10, error=0.01, wrong="5")]
    found = gain(points, "end")
    assert found.value == pytest.approx(0.01)
    assert found.error == pytest.approx(math.sqrt(0.01 * 0.99 / 99))
    assert sizes(points, "end") == [10]


def test_gain_is_paired_by_seed():
    """Both networks gain the same on different images: no error from seeds."""
    points = [
        replace(POINT, seed=1, wrong="7 8", error=0.02),
        replace(POINT, seed=1, n_draws=10, wrong="8", error=0.01),
        replace(POINT, n_draws=10, wrong="5", error=0.01),
        POINT,
    ]
    found = gain(points, "end")
    gains = [0.5, 0.5] + [0.0] * 98
    assert found.value == pytest.approx(0.01)
    assert found.error == pytest.approx(np.std(gains, ddof=1) / 10)
    assert mean_of(points, "end", 10, "error") == pytest.approx(0.01)


def test_seeds_that_differ_add_to_the_error():
    """The same images, but one network gains on two and the other on none."""
    first = [replace(POINT, seed=s) for s in range(2)]
    found = between(first, [replace(POINT, wrong=""), replace(POINT, seed=1)])
    images = np.var([0.5, 0.5] + [0.0] * 98, ddof=1) / 100
    seeds = np.var([0.02, 0.0], ddof=1) / 2
    assert found.value == pytest.approx(0.01)
    assert found.error == pytest.approx(math.sqrt(images + seeds))


@pytest.mark.parametrize(
    ("gap", "sure", "none"),
    [
        (Difference(0.3, 0.1), True, False),
        (Difference(0.1, 0.1), False, True),
        (Difference(-1, 0.1), 0, 0),
    ],
)
def test_a_gap_is_sure_beyond_two_standard_errors(gap, sure, none):
    assert (gap.is_sure, gap.is_none) == (sure, none)
    undecided = "not decided by these networks"
    expected = undecided if none else "holds" if sure else "does not hold"
    assert gap.verdict == expected


def test_command_line_without_data(tmp_path, no_data):
    args = ["reproduce", "convnet", "--quick", "--workers", "1"]
    assert main([*args, "--output", str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "digits, 1,347 images to train on, 300 to test on" in page
    assert (tmp_path / "convnet_quick.png").stat().st_size > 10_000
    stored = read_records(tmp_path / "convnet_quick.csv", CurvePoint)
    assert [p.n_draws for p in stored if p.dropout == "none"] == [STANDARD]
    assert sizes(stored, "everywhere") == sizes(stored, "end") == [1, 2, 5, 10]
    assert {p.dropout for p in stored} == set(DROPOUT)
    experiment = ConvNet(tmp_path, quick=True)
    growth = read_records(experiment.growth(0), Growth)
    assert [(g.data, g.pooling) for g in growth] == [("digits", 1), ("digits", 2)]
    assert complete(experiment, n_workers=1) == 0
    experiment.growth(0).unlink()  # a job whose file is lost is run again
    assert complete(experiment, n_workers=1) == 1
    assert read_records(experiment.growth(0), Growth) == growth


@pytest.fixture(scope="module")
def stored():
    if not RESULTS.exists():
        pytest.skip(f"{RESULTS.name} is absent: run caveat reproduce convnet")
    return read_records(RESULTS, CurvePoint)


def test_stored_dropout_everywhere_needs_averages(stored):
    found = gain(stored, "everywhere")
    assert found.value > 4 * found.error and found.value > 0.004
    most = sizes(stored, "everywhere")[-1]
    likelihoods = [
        mean_of(stored, "everywhere", n, "log_likelihood") for n in (STANDARD, most)
    ]
    assert likelihoods[1] > likelihoods[0]


def test_stored_dropout_at_the_end_does_not(stored):
    assert abs(gain(stored, "end").value) < 0.001


def test_stored_errors_fall_with_the_number_of_passes(stored):
    for where in DROPOUT[1:]:
        grid = sizes(stored, where)
        errors = [mean_of(stored, where, n, "error") for n in grid]
        assert errors[0] > errors[-1] and grid[-1] == 100
    for where in DROPOUT:
        assert max(p.error for p in select(stored, where, STANDARD)) < 0.02
