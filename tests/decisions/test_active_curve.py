"""Learning curves."""

import pytest

from caveat.decisions import LearningCurve
from caveat.errors import ParameterError, ShapeError


def test_labels_needed_is_the_first_time():
    curve = LearningCurve((10, 20, 30), (0.5, 0.9, 0.8)).with_point(40, 0.95)
    assert len(curve) == 4
    assert [curve.labels_needed(t) for t in (0.5, 0.85, 0.95, 0.96)] == [
        10,
        20,
        40,
        None,
    ]
    assert LearningCurve().labels_needed(0.1) is None


def test_bad_curves():
    with pytest.raises(ShapeError, match="score must have the shape"):
        LearningCurve((1, 2), (0.5,))
    with pytest.raises(ParameterError, match="n_labels must grow"):
        LearningCurve((2, 2), (0.5, 0.6))
