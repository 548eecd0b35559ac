"""What deferring does, against a plain count."""

import itertools
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


def test_a_single_error_shows_nothing():
    """One of eight rows handed on, of 89: one time in eleven by chance alone."""
    losses = np.zeros(89)
    losses[-3] = 1.0
    found = Deferred.of(RiskCoverage.from_scores(np.arange(89.0), losses), 0.09)
    assert (found.n_deferred, found.after) == (8, 0.0)
    assert found.worse_by_chance == pytest.approx(8 / 89) and not found.is_shown


def test_counted_errors_against_all_ways_to_draw_rows():
    losses = np.array([0, 0, 1, 0, 1, 0, 0, 1, 1, 1.0])
    found = Deferred.of(RiskCoverage.from_scores(np.arange(10.0), losses), 0.3)
    sums = [sum(losses[list(own)]) for own in itertools.combinations(range(10), 3)]
    assert found.worse_by_chance == pytest.approx(np.mean(np.array(sums) >= 3))
    assert found.better_by_chance == pytest.approx(np.mean(np.array(sums) <= 3))
    again = Deferred.of(RiskCoverage.from_scores(-np.arange(10.0), losses), 0.3)
    assert again.better_by_chance == pytest.approx(np.mean(np.array(sums) <= 1))


def test_losses_that_are_not_counted_are_judged_by_their_spread():
    generator = np.random.default_rng(2)
    losses = generator.exponential(size=400)
    curve = RiskCoverage.from_scores(losses + generator.exponential(size=400), losses)
    found = Deferred.of(curve, 0.1)
    assert found.is_shown and found.worse_by_chance < 1e-9
    assert found.better_by_chance == pytest.approx(1.0)
