"""Gaps with their errors, and the results of figure 2."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from caveat.cli import main
from caveat.papers.records import read_records, write_records
from caveat.papers.reviews import experiment as reviews
from caveat.papers.reviews.experiment import CategoryPanel, by_category, counted
from caveat.papers.reviews.runs import VERSIONS, ReviewRecord, run_split
from caveat.papers.runner import complete

RESULTS = Path(__file__).parents[3] / "docs" / "results" / "reviews.csv"


def test_splits_are_resumed(tmp_path, monkeypatch, real_data):
    monkeypatch.setattr(reviews, "_PRECISIONS_QUICK", (10.0, 100.0))
    monkeypatch.setattr(reviews, "CATEGORIES", ["dvd"])
    own = reviews.AmazonReviews(tmp_path, quick=True)
    assert complete(own, n_workers=1) == 8
    records = read_records(own.path("csv"), ReviewRecord)
    assert [r.repeat for r in records] == [0, 0, 0, 0, 1, 1, 1, 1] * 2
    assert [r.part for r in records] == ["test", "test", "validation", "validation"] * 4
    assert [r.version for r in records] == ["full"] * 8 + ["top5000"] * 8
    assert records[0].plain != records[4].plain  # another split
    assert (records[2].n_train, records[2].n_test) == (1200, 300)  # of 1500
    write_records(own.path("csv"), records[:7])
    ran = []
    monkeypatch.setattr(
        reviews, "run_split", lambda job, p: ran.append(job) or run_split(job, p)
    )
    assert complete(own, n_workers=1) == 5
    parts = ("test", "validation")
    rest = [("top5000", "dvd", k, part) for k in (0, 1) for part in parts]
    assert ran == [("full", "dvd", 1, "validation"), *rest]
    again = read_records(own.path("csv"), ReviewRecord)
    assert [replace(r, seconds=0.0) for r in again] == [
        replace(r, seconds=0.0) for r in records
    ]


def a_record(repeat, precision, plain, dropout, part="test"):
    errors = (plain, dropout, dropout, dropout)
    own = ("full", "dvd", repeat, part, precision)
    return ReviewRecord(*own, *errors, 75, 25, 9, 0.1)


def test_gaps_are_paired_and_their_errors_allow_for_overlap():
    plain, gaps = np.array([0.2, 0.3, 0.4]), np.array([-0.02, -0.03, -0.04])
    records = [
        a_record(k, precision, plain[k], plain[k] + sign * gaps[k])
        for k in range(3)
        for precision, sign in ((1.0, 1), (10.0, -1), (100.0, 0))
    ]
    panel = CategoryPanel([*records, *(replace(r, part="validation") for r in records)])
    curve = panel.curve("dropout_50")
    np.testing.assert_allclose(curve.gap, [-0.03, 0.03, 0.0], atol=1e-12)
    expected = 0.01 * np.sqrt(1 / 3 + 25 / 75)
    np.testing.assert_allclose(curve.gap_se, [expected, expected, 0.0], atol=1e-12)
    assert counted(curve) == (1, 1, 1)
    assert panel.against_best_plain("dropout_50")[0] == pytest.approx(-0.03)


def test_best_against_best_is_chosen_without_test_reviews():
    """What is best on test reviews is not best on the reviews that are held out."""
    records = [
        *(a_record(k, 1.0, 0.30, 0.10) for k in range(3)),
        *(a_record(k, 10.0, 0.20 + 0.01 * k, 0.25) for k in range(3)),
        *(a_record(k, 1.0, 0.30, 0.40, "validation") for k in range(3)),
        *(a_record(k, 10.0, 0.20, 0.25, "validation") for k in range(3)),
    ]
    panel = CategoryPanel(records)
    errors, precisions = panel.chosen(["dropout_10", "dropout_50"])
    np.testing.assert_array_equal(errors, 0.25)
    np.testing.assert_array_equal(precisions, 10.0)
    gap, error = panel.best_against_best()
    assert gap == pytest.approx(0.25 - 0.21)
    assert error == pytest.approx(0.01 * np.sqrt(1 / 3 + 25 / 75))


def test_command_line(tmp_path, monkeypatch, real_data):
    monkeypatch.setattr(reviews, "_PRECISIONS_QUICK", (10.0, 100.0))
    arguments = "reproduce reviews --quick --workers 1 --output".split()
    assert main([*arguments, str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    for word in (
        "## `full`",
        "## `top5000`",
        "kitchen 5,945 x 5,000",
        "**not judged**",
    ):
        assert word in page
    assert (tmp_path / "reviews_quick.png").stat().st_size > 10_000
    records = read_records(tmp_path / "reviews_quick.csv", ReviewRecord)
    assert len(records) == 2 * 4 * 2 * 2 * 2
    assert all(0.03 < r.dropout_50 < 0.3 for r in records)


@pytest.mark.skipif(
    not RESULTS.exists(), reason="needs results: caveat reproduce reviews"
)
def test_stored_results():
    records = read_records(RESULTS, ReviewRecord)
    assert len(records) == 2 * 4 * 40 * 13 * len(reviews.PARTS)
    assert sum(r.seconds for r in records) < 2 * 30 * 60
    for version in VERSIONS:
        for panel in by_category(records, version):
            assert panel.against_best_plain("dropout_50")[0] < 0.0
