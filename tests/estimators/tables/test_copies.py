"""Copies of rows are no new rows."""

import numpy as np
import pytest

from caveat import DropoutClassifier, DropoutRegressor
from caveat.errors import CaveatWarning
from caveat.estimators.tables.copies import without_copies

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X[:, 0] + RNG.normal(size=60)
EACH = np.repeat(np.arange(60), RNG.integers(1, 6, size=60))
ONES = np.ones(len(EACH))


def test_copies_become_weights():
    order = np.random.default_rng(1).permutation(len(EACH))
    rows = EACH[order]
    with pytest.warns(CaveatWarning, match=f"{len(rows) - 60} of {len(rows)} rows are"):
        x, y, weight = without_copies(X[rows], Y[rows], ONES)
    first = [int(np.flatnonzero((X == row).all(1))[0]) for row in x]
    assert sorted(first) == list(range(60)) and np.array_equal(y, Y[first])
    assert np.allclose(weight, np.bincount(EACH)[first] * 60 / len(rows))


def as_they_are(x, y, weight=None):
    weight = np.ones(len(x)) if weight is None else weight
    found = without_copies(x, y, weight)
    return all(a is b for a, b in zip(found, (x, y, weight), strict=True))


def test_rows_that_are_alike_by_chance_stay():
    codes = RNG.integers(0, 3, size=(200, 2)).astype(float)
    assert as_they_are(codes, RNG.normal(size=200))
    assert as_they_are(codes, codes.sum(1))  # a list of prices, by code
    assert as_they_are(X[EACH], RNG.normal(size=len(EACH)))  # measured again
    assert as_they_are(np.r_[X, X[:5]], np.r_[Y, Y[:5]])  # a few
    assert as_they_are(np.zeros((9, 2)), np.zeros(9))
    assert as_they_are(np.repeat(0.5, 9)[:, None], np.arange(9.0))


@pytest.mark.filterwarnings("ignore:the networks .* are worse")
def test_intervals_of_copied_rows_hold_new_ones():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(1100, 4))
    y = np.sin(2 * x[:, 0]) + x[:, 1] + 0.5 * rng.normal(size=1100)
    rows = np.repeat(np.arange(100), 6)
    model = DropoutRegressor(preset="fast", random_state=0)
    with pytest.warns(CaveatWarning, match="500 of 600 rows"):
        model.fit(x[rows], y[rows])
    lower, upper = model.predict_interval(x[100:], level=0.9)
    inside = (lower <= y[100:]) & (y[100:] <= upper)
    assert inside.mean() > 0.8


@pytest.mark.filterwarnings("ignore:the networks .* are worse")
def test_a_rare_class_that_was_copied():
    rng = np.random.default_rng(3)
    x, labels = rng.normal(size=(660, 4)), (rng.random(660) < 0.1).astype(int)
    rows = np.arange(160)
    rows = np.r_[rows[labels[:160] == 0], np.repeat(rows[labels[:160] == 1], 9)]
    model = DropoutClassifier(preset="fast", random_state=0)
    with pytest.warns(CaveatWarning, match="copies"):
        model.fit(x[rows], labels[rows])
    share = labels[rows].mean()
    probs = model.predict_proba(x[160:])
    assert abs(probs[:, 1] - share).max() < 0.3  # nothing is to be learned
    assert probs[:, 1].mean() == pytest.approx(share, abs=0.1)
