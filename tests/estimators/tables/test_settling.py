"""A settled pool says the same, and its arrays lie as those from a file do."""

import numpy as np

from caveat.estimators.tables.settling import settled
from tests.estimators.tables.data import a_line
from tests.estimators.tables.test_regression import fitted


def test_there_and_back():
    x, y = a_line(60)
    table = settled(fitted(x, y).table)
    for before, after in zip(
        table.draws(x, n_draws=9, seed=1),
        settled(table).draws(x, n_draws=9, seed=1),
        strict=True,
    ):
        assert np.array_equal(before, after)


def test_arrays_are_contiguous_copies():
    turned = np.arange(6.0).reshape(2, 3).T
    (found, text) = settled((turned, "a"))
    assert found.flags.c_contiguous and text == "a"
    assert np.array_equal(found, turned) and not np.shares_memory(found, turned)
