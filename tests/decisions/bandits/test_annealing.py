"""Drop rates that fall with the data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caveat.decisions.bandits.annealing import annealed_rate, check_after
from caveat.errors import ParameterError


def odds(rate: float) -> float:
    return rate / (1 - rate)


@given(st.floats(0.01, 0.95), st.integers(1, 500), st.integers(1, 10**6))
def test_odds_fall_as_one_over_rows(rate, after, n_rows):
    """E150 restated."""
    found = annealed_rate(rate, n_rows, after=after)
    expected = odds(rate) * min(1.0, after / n_rows)
    assert odds(found) == pytest.approx(expected)
    assert 0 < found <= rate


def test_without_annealing():
    assert annealed_rate(0.2, 10**9, after=None) == 0.2
    assert check_after(None) is None
    with pytest.raises(ParameterError, match="anneal_after must be at least 1"):
        check_after(0)
