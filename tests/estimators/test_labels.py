"""Labels become numbers, or are refused."""

import doctest

import numpy as np
import pytest

from caveat.errors import ParameterError, ShapeError
from caveat.estimators import labels
from caveat.estimators.labels import label_numbers


def test_examples():
    result = doctest.testmod(labels)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize(
    ("classes", "y", "numbers"),
    [
        (["a", "c"], ["c", "a"], [1, 0]),
        ([-1, 1], [1, -1, 1], [1, 0, 1]),
        ([False, True], [True], [1]),
        ([0.5, 2.0], [2.0], [1]),
    ],
)
def test_places(classes, y, numbers):
    assert label_numbers(np.array(classes), y, len(y)).tolist() == numbers


def test_wrong_labels():
    classes = np.array(["a", "c"])
    with pytest.raises(ParameterError, match=r"Got \['b'\]"):
        label_numbers(classes, ["a", "b"], 2)
    with pytest.raises(ParameterError, match="labels seen in fit"):
        label_numbers(classes, [0, 1], 2)
    with pytest.raises(ShapeError, match=r"one label per row, 3\. Got 2"):
        label_numbers(classes, ["a", "c"], 3)
