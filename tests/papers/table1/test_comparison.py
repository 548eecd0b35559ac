"""Verdicts and paired differences."""

import math

import pytest

from caveat.data import load_uci_per_split
from caveat.papers.table1.comparison import (
    SplitMean,
    gap_in_errors,
    rows,
    verdict,
)
from tests.papers.table1.records import a_record


def test_verdicts():
    ours, better, near = SplitMean(3.0, 0.1), SplitMean(2.0, 0.1), SplitMean(3.1, 0.1)
    assert verdict("rmse", ours, better) == "lose"
    assert verdict("ll", ours, better) == "win"
    assert verdict("rmse", ours, near) == verdict("ll", near, ours) == "tie"


def test_gaps_count_both_errors():
    assert gap_in_errors(SplitMean(3.0, 0.3), SplitMean(2.0, 0.4)) == pytest.approx(2)
    assert gap_in_errors(SplitMean(1.0, 0.3), SplitMean(2.0, 0.4)) == pytest.approx(-2)
    assert gap_in_errors(SplitMean(1.0, 0.0), SplitMean(2.0, 0.0)) == -math.inf


def test_paired_differences_are_by_split(real_data):
    theirs = [
        r
        for r in load_uci_per_split()
        if r.dataset == "boston" and r.variant == "original_1x"
    ]
    ours = [
        a_record(split=r.split, rmse=r.rmse_mc + 0.1, log_likelihood=r.ll_mc - 0.2)
        for r in theirs
    ]
    (row,) = rows(ours)
    assert row.paired["rmse"] == pytest.approx((0.1, 0.0), abs=1e-12)
    assert row.paired["ll"] == pytest.approx((-0.2, 0.0), abs=1e-12)
    assert row.published["Dropout (paper)"]["rmse"].error == pytest.approx(
        0.85 / math.sqrt(20), rel=0.03
    )
