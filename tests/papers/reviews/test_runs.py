"""Errors of a split against exact solutions."""

import numpy as np
import pytest
import scipy.sparse as sp

from caveat.data.reviews import Reviews
from caveat.estimators import BayesianDropoutRegression
from caveat.papers.reviews.runs import METHODS, all_reviews, run_split, split_errors


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
    (record,) = run_split(("full", "kitchen", 0, "test"), (3.0,))
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
