"""What deferring does, against a plain count."""

import math

import numpy as np
import pytest

from caveat.evaluation import RiskCoverage
from caveat.reports.deferred import Deferred


def test_it_is_what_sorting_and_counting_gives():
    generator = np.random.default_rng(0)
    scores, losses = generator.random(500), generator.random(500)
    curve = RiskCoverage.from_scores(scores, losses)
    for asked in (0.0, 0.05, 0.1, 0.37, 0.5):
        found = Deferred.of(curve, asked)
        n_kept = 500 - math.floor(round(500 * asked, 9))
        order = np.argsort(scores)
        assert found.n_deferred == 500 - n_kept
        assert found.after == pytest.approx(losses[order[:n_kept]].mean())
        assert found.threshold == scores[order[n_kept - 1]]
        if asked:
            gap = losses[order[n_kept:]].mean() - losses[order[:n_kept]].mean()
            assert found.advantage.value == pytest.approx(gap)
            assert found.gain == pytest.approx(1.0 - found.after / losses.mean())


def test_its_error_is_that_of_rows_chosen_at_random():
    generator = np.random.default_rng(1)
    losses = generator.exponential(size=200)
    found = Deferred.of(RiskCoverage.from_scores(np.arange(200.0), losses), 0.1)
    gaps = []
    for _ in range(4000):
        mixed = generator.permutation(losses)
        gaps.append(mixed[180:].mean() - mixed[:180].mean())
    # the standard error of a standard deviation of 4,000 is 1.2 %; five of them
    assert found.advantage.error == pytest.approx(np.std(gaps), rel=0.06)


def test_rows_of_one_score_stay_together():
    curve = RiskCoverage.from_scores([1.0] * 8 + [2.0] * 2, [0.0] * 8 + [1.0] * 2)
    assert Deferred.of(curve, 0.1).n_deferred == 0
    assert Deferred.of(curve, 0.2).n_deferred == 2
    assert Deferred.of(curve, 0.2).after == 0.0
    assert Deferred.of(curve, 0.1).advantage.error == math.inf


def test_without_errors_there_is_no_gain():
    found = Deferred.of(RiskCoverage.from_scores([1.0, 2.0, 3.0], [0, 0, 0]), 0.5)
    assert math.isnan(found.gain) and not found.is_shown and not found.is_reversed
