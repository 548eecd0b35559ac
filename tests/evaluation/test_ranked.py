"""The score of rows and its mean; tests/predictive/test_crps.py has the formulas."""

import math

import pytest

from caveat.evaluation import crps
from caveat.evaluation.ranked import crps_of_rows


def test_mean_and_error_over_rows(regression, outcomes):
    rows = crps_of_rows(regression, outcomes)[:, 0]
    found = crps(regression, outcomes)
    assert found.value == pytest.approx(rows.mean())
    assert found.error == pytest.approx(rows.std(ddof=1) / math.sqrt(300))


def test_lowest_for_the_right_spread(regression, outcomes):
    wrong = [regression.with_precision(tau) for tau in (0.25, 400.0)]
    best = crps(regression, outcomes).value
    assert all(crps(p, outcomes).value > best for p in wrong)
