"""Scores of calibration rows serve every level they are enough for."""

import numpy as np
import pytest

from caveat.decisions import CalibrationScores, Guarantee
from caveat.errors import ParameterError

SCORES = np.array([3.0, 1.0, 2.0, 2.0])


def test_any_level_is_that_of_its_own_guarantee():
    found = CalibrationScores.of(SCORES)
    assert found.values == (1.0, 2.0, 2.0, 3.0) and len(found) == 4
    for level in (0.2, 0.35, 0.6, 0.8):
        assert found.guarantee(level) == Guarantee.of(SCORES, level)
    assert found.guarantee(1e-15).limit == 1.0  # the best row, not the worst
    with pytest.raises(ParameterError, match=r"at least 9 calibration rows. Got 4"):
        found.guarantee(0.9)


def test_counting():
    found = CalibrationScores.of(SCORES)
    at = np.array([0.0, 1.0, 2.0, 2.5, 9.0])
    assert found.n_below(at).tolist() == [0, 0, 1, 3, 4]
    assert found.n_up_to(at).tolist() == [0, 1, 3, 3, 4]


def test_repr_is_short():
    assert repr(CalibrationScores.of(SCORES)) == "CalibrationScores(4 rows)"
