"""Claims on Table 1, by the stored rows and by rows that say the opposite."""

from dataclasses import replace

import pytest

from caveat.papers.catalogue import REPRODUCTIONS, Protocol
from caveat.papers.runner import stored_records
from caveat.papers.table1.claims import table1_claims
from tests.papers.test_stored import RESULTS


@pytest.fixture
def records(real_data):
    (table1,) = (each for each in REPRODUCTIONS if each.name == "table1")
    return stored_records(table1.experiment(RESULTS, protocol=Protocol.paper))


def found(records):
    return [claim.found for claim in table1_claims(records)]


def test_perfect_rows_win_everywhere(records):
    better = [
        replace(r, rmse=0.0, log_likelihood=99.0, rmse_weight_averaging=1.0)
        if r.variant != "no dropout"
        else r
        for r in records
    ]
    wins, _, _, without, averaging = found(better)
    assert "9 of 9 sets (at least 8): **holds**" in wins
    assert "9 of 9 (all): **holds**" in wins
    assert "RMSE: **holds**; log-likelihood: **holds**" in without
    assert "on 9 of 9 sets; on more than half: **holds**" in averaging


def test_useless_rows_win_nowhere(records):
    worse = [
        replace(r, rmse=1e3, log_likelihood=-99.0, rmse_weight_averaging=1.0)
        for r in records
    ]
    assert all("**holds**" not in words for words in found(worse))
    assert "on 0 of 9 sets (at least 8): **does not hold**" in found(worse)[0]


def spread(records, name, rmse, log_likelihood):
    """Three in four splits as told, the fourth an outlier on the bad side."""
    told = []
    for number, r in enumerate(r for r in records if r.dataset == name):
        bad = 9.0 * (number % 4 == 3)
        told.append(replace(r, rmse=rmse + bad, log_likelihood=log_likelihood - bad))
    return told + [r for r in records if r.dataset != name]


def test_medians_are_those_of_the_rows(records):
    told = spread(spread(records, "boston", 2.68, -2.34), "concrete", 5.15, -3.0)
    medians = found(told)[1]
    assert medians.startswith("Ours 2.68, -2.34, 5.15; all within 3 standard errors")
    assert medians.endswith("**holds**.")
    other = found(spread(told, "concrete", 60.0, -3.0))[1]
    assert "Ours 2.68, -2.34, 60.00" in other and "**does not hold**" in other


def test_outliers_make_the_mean_worse_than_the_median(records):
    for name in {r.dataset for r in records}:
        records = spread(records, name, 1.0, -1.0)
    words = found(records)[2]
    assert "in RMSE on 9, in log-likelihood on 9 of 9 sets" in words
    assert words.count("**holds**") == 2
