"""Pools on disk: the same afterwards; nothing but known kinds comes back."""

import json
import math

import numpy as np
import pytest

from caveat.estimators.tables.storing import put_together, settled, taken_apart
from tests.estimators.tables.data import a_line
from tests.estimators.tables.test_regression import fitted


def test_there_and_back():
    x, y = a_line(60)
    table = settled(fitted(x, y).table)
    tensors = {}
    stored = json.loads(json.dumps(taken_apart(table, "table", tensors)))
    again = put_together(stored, tensors)
    for before, after in zip(
        table.draws(x, n_draws=9, seed=1),
        again.draws(x, n_draws=9, seed=1),
        strict=True,
    ):
        assert np.array_equal(before, after)


def test_infinity_survives_json():
    stored = json.loads(json.dumps(taken_apart((math.inf, 1.0), "a", {})))
    assert put_together(stored, {}) == (math.inf, 1.0)


def test_unknown_kinds_are_not_made():
    with pytest.raises(KeyError):
        put_together({"kind": "Popen", "args": "true"}, {})
