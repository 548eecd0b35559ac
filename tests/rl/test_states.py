"""Generators as strings."""

import numpy as np

from caveat.rl.states import restore, states_of


def test_generators_go_on_where_they_were():
    first = [np.random.default_rng(k) for k in range(2)]
    first[0].integers(5, dtype=np.int32)  # leaves half a word for the next call
    states = states_of(first)
    expected = [g.integers(1000, size=5, dtype=np.int32).tolist() for g in first]
    second = [np.random.default_rng() for _ in range(2)]
    restore(second, states)
    found = [g.integers(1000, size=5, dtype=np.int32).tolist() for g in second]
    assert found == expected
