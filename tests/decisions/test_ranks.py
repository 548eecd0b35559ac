"""A new score keeps the covering rank as often as it should."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from caveat.decisions.ranks import covering_rank, least_rows


@settings(deadline=None)
@given(st.integers(1, 10_000), st.integers(1, 99))
def test_the_least_rank_in_whole_numbers(n_rows, percent):
    rank = covering_rank(n_rows, percent / 100)
    share = Fraction(percent, 100)
    assert Fraction(rank, n_rows + 1) >= share > Fraction(rank - 1, n_rows + 1)


@pytest.mark.parametrize(
    ("level", "rows"), [(0.5, 1), (0.9, 9), (0.95, 19), (0.99, 99)]
)
def test_rows_that_suffice(level, rows):
    assert least_rows(level) == rows
    assert covering_rank(rows, level) == rows
    assert covering_rank(rows - 1, level) > rows - 1


def test_a_new_score_keeps_it():
    scores = np.random.default_rng(0).normal(size=(20_000, 20))
    known, new = np.sort(scores[:, :19]), scores[:, 19]
    for level in (0.5, 0.8, 0.93):
        rank = covering_rank(19, level)
        found = (new <= known[:, rank - 1]).mean()
        exact = rank / 20
        assert abs(found - exact) < 5 * np.sqrt(exact * (1 - exact) / 20_000)
