"""Bands against enumeration and known distributions."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import binom, kstwo

from caveat.reports.bands import mean_band, share_band, spread_band, uniform_limit


@pytest.mark.parametrize("n_rows", [1, 10, 57, 400])
def test_a_share_leaves_its_band_in_at_most_five_percent(n_rows):
    for level in (0.05, 0.5, 0.9):
        low, high = share_band(level, n_rows)
        counts = np.arange(n_rows + 1)
        outside = (counts / n_rows < low - 1e-9) | (counts / n_rows > high + 1e-9)
        assert binom.pmf(counts, n_rows, level)[outside].sum() <= 0.05
        assert 0.0 <= low <= level <= high <= 1.0


def test_rows_of_their_own_probability_are_enumerated():
    probs = np.array([0.9, 0.2, 0.55, 0.7, 0.99])
    law = np.zeros(6)
    for hits in product([0, 1], repeat=5):
        chosen = np.array(hits)
        law[chosen.sum()] += np.where(chosen, probs, 1 - probs).prod()
    low, high = mean_band(probs)
    inside = (np.arange(6) / 5 >= low) & (np.arange(6) / 5 <= high)
    assert law[inside].sum() >= 0.95
    assert law[: int(low * 5)].sum() <= 0.025
    assert law[int(high * 5) + 1 :].sum() <= 0.025


def test_equal_probabilities_give_the_binomial_band():
    low, high = mean_band(np.full(200, 0.8))
    expected = share_band(0.8, 200)
    assert (low, high) == pytest.approx([float(v) for v in expected])


@pytest.mark.parametrize("failures", [0.02, 0.5, 3.0, 40.0, 600.0, 2400.0])
def test_many_rows_stay_inside_with_the_probability_they_should(failures):
    n_rows = 3000
    probs = np.full(n_rows, 1.0 - failures / n_rows)
    low, high = mean_band(probs)
    law = binom(n_rows, 1.0 - failures / n_rows)
    below = law.cdf(round(low * n_rows) - 1)
    above = law.sf(round(high * n_rows))
    assert below <= 0.0255 and above <= 0.0255
    if failures >= 40.0:  # and the band is not wider than it must be
        assert below >= 0.018 and above >= 0.018


def test_sure_rows_leave_no_room():
    assert mean_band(np.ones(30)) == (1.0, 1.0)


def test_spread_and_uniform_limits():
    low, high = spread_band(np.array([10, 1000]))
    assert low[0] < low[1] < 1.0 < high[1] < high[0]
    assert uniform_limit(1000) == pytest.approx(kstwo.ppf(0.95, 1000), rel=0.02)
