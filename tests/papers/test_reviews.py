"""Figure 2 of paper 002: errors against exact solutions, resuming, the page."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from caveat.cli import main
from caveat.data.reviews import Reviews
from caveat.estimators import BayesianDropoutRegression
from caveat.papers.records import read_records, write_records
from caveat.papers.reviews import experiment as reviews
from caveat.papers.reviews.experiment import CategoryPanel, by_category, counted
from caveat.papers.reviews.runs import (
    METHODS,
    VERSIONS,
    ReviewRecord,
    all_reviews,
    run_split,
    split_errors,
)
from caveat.papers.runner import complete

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "reviews.csv"


def bags(n_rows, n_columns, seed):
    """Counts in which some words praise, some complain, and some are rare."""
    rng = np.random.default_rng(seed)
    tilt = np.random.default_rng(0).normal(size=n_columns)
    rates = np.geomspace(1.0, 0.01, n_columns)
    y = rng.choice([-1, 1], n_rows)
    counts = rng.poisson(rates * np.exp(0.4 * np.outer(y, tilt)))
    return Reviews(sp.csr_matrix(counts, dtype=np.float64), y)


@pytest.mark.parametrize(("n_rows", "n_columns"), [(60, 150), (150, 60)])
def test_errors_are_those_of_exact_solutions(n_rows, n_columns):
    train, test = bags(n_rows, n_columns, 1), bags(80, n_columns, 2)
    precisions = (0.1, 1.0, 30.0)
    errors = split_errors(train, test, precisions)
    assert errors.shape == (3, 4)
    for row, precision in zip(errors, precisions, strict=True):
        for error, rate in zip(row, METHODS.values(), strict=True):
            model = BayesianDropoutRegression(rate, precision, fit_intercept=False)
            scores = model.fit(train.X.toarray(), train.y).predict(test.X.toarray())
            expected = (np.sign(scores) != test.y).mean()
            assert abs(error - expected) <= 1 / 80 + 1e-12  # a score near 0 may differ


def test_signs_by_iteration_are_exact_on_real_reviews(real_data):
    (record,) = run_split(("full", "kitchen", 0), (3.0,))
    data = all_reviews("full", "kitchen")
    order = np.random.default_rng([3, 0]).permutation(len(data.y))
    train, test = order[:1500], order[1500:]
    model = BayesianDropoutRegression(0.5, 3.0, fit_intercept=False)
    scores = model.fit(data.X[train], data.y[train]).predict(data.X[test])
    expected = (np.sign(scores) != data.y[test]).mean()
    assert record.dropout_50 == pytest.approx(expected, abs=0.0021)  # one review
    assert (record.n_train, record.n_test) == (1500, 500)


def test_sizes_are_those_of_the_paper(real_data):
    sizes = [all_reviews("top5000", c).X.shape[0] for c in ("dvd", "kitchen")]
    assert [size + 1 for size in sizes] == [3587, 5946]


def test_splits_are_resumed(tmp_path, monkeypatch, real_data):
    monkeypatch.setattr(reviews, "_PRECISIONS_QUICK", (10.0, 100.0))
    monkeypatch.setattr(reviews, "CATEGORIES", ["dvd"])
    own = reviews.AmazonReviews(tmp_path, quick=True)
    assert complete(own, n_workers=1) == 4
    records = read_records(own.path("csv"), ReviewRecord)
    assert [r.repeat for r in records] == [0, 0, 1, 1] * 2
    assert [r.version for r in records] == ["full"] * 4 + ["top5000"] * 4
    assert records[0].plain != records[2].plain  # another split
    write_records(own.path("csv"), records[:3])
    ran = []
    monkeypatch.setattr(
        reviews, "run_split", lambda job, p: ran.append(job) or run_split(job, p)
    )
    assert complete(own, n_workers=1) == 3
    assert ran == [("full", "dvd", 1), ("top5000", "dvd", 0), ("top5000", "dvd", 1)]
    again = read_records(own.path("csv"), ReviewRecord)
    assert [replace(r, seconds=0.0) for r in again] == [
        replace(r, seconds=0.0) for r in records
    ]


def a_record(repeat, precision, plain, dropout):
    errors = (plain, dropout, dropout, dropout)
    return ReviewRecord("full", "dvd", repeat, precision, *errors, 75, 25, 9, 0.1)


def test_gaps_are_paired_and_their_errors_allow_for_overlap():
    plain, gaps = np.array([0.2, 0.3, 0.4]), np.array([-0.02, -0.03, -0.04])
    records = [
        a_record(k, precision, plain[k], plain[k] + sign * gaps[k])
        for k in range(3)
        for precision, sign in ((1.0, 1), (10.0, -1), (100.0, 0))
    ]
    panel = CategoryPanel(records)
    curve = panel.curve("dropout_50")
    np.testing.assert_allclose(curve.gap, [-0.03, 0.03, 0.0], atol=1e-12)
    expected = 0.01 * np.sqrt(1 / 3 + 25 / 75)
    np.testing.assert_allclose(curve.gap_se, [expected, expected, 0.0], atol=1e-12)
    assert counted(curve) == (1, 1, 1)
    assert panel.against_best_plain("dropout_50")[0] == pytest.approx(-0.03)


def test_command_line(tmp_path, capsys, monkeypatch, real_data):
    monkeypatch.setattr(reviews, "_PRECISIONS_QUICK", (10.0, 100.0))
    arguments = "reproduce reviews --quick --workers 1 --output".split()
    assert main([*arguments, str(tmp_path)]) == 0
    page = capsys.readouterr().out
    for word in ("## `full`", "## `top5000`", "kitchen 5,945 x 5,000", "**holds**"):
        assert word in page
    assert (tmp_path / "reviews_quick.png").stat().st_size > 10_000
    records = read_records(tmp_path / "reviews_quick.csv", ReviewRecord)
    assert len(records) == 2 * 4 * 2 * 2
    assert all(0.03 < r.dropout_50 < 0.3 for r in records)


@pytest.mark.skipif(
    not RESULTS.exists(), reason="needs results: caveat reproduce reviews"
)
def test_stored_results():
    records = read_records(RESULTS, ReviewRecord)
    assert len(records) == 2 * 4 * 40 * 13
    assert sum(r.seconds for r in records) < 2 * 15 * 60
    for version in VERSIONS:
        for panel in by_category(records, version):
            assert panel.against_best_plain("dropout_50")[0] < 0.0
