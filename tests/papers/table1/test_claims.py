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
    wins, _, without, averaging = found(better)
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


def test_medians_are_those_of_the_rows(records):
    boston = [
        replace(r, rmse=2.68 + shift, log_likelihood=-2.34 + shift)
        for r, shift in zip(
            [r for r in records if r.dataset == "boston"],
            [-0.5, 0.0, 0.5] * 20,
            strict=True,
        )
    ]
    rest = [r for r in records if r.dataset != "boston"]
    assert "within 5% of both: **holds**" in found([*boston, *rest])[1]
