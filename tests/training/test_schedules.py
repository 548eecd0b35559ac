import numpy as np
import pytest

from caveat.errors import ParameterError
from caveat.training.schedules import (
    constant,
    cosine,
    inverse_decay,
    one_cycle,
    schedule,
)


def test_values_at_marked_places():
    half = np.array([0.0, 0.5, 1.0])
    assert constant(half).tolist() == [1, 1, 1]
    assert cosine(half) == pytest.approx([1, 0.5, 0])
    places = np.array([0.0, 0.05, 0.1, 0.55, 1.0])
    assert one_cycle(places) == pytest.approx([0, 0.5, 1, 0.5, 0])


def test_names():
    assert schedule("cosine") is cosine
    with pytest.raises(ParameterError, match="'cosine'"):
        schedule("steps")


def test_reference_values_of_the_papers_policy():
    rates = [inverse_decay(n, 0.01, gamma=1e-4, power=0.25) for n in (0, 1e4, 1e6)]
    expected = [0.01, 0.008408964152537, 0.003154421009013]
    assert rates == pytest.approx(expected, abs=1e-15)
