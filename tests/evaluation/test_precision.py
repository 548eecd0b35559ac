"""The search finds the highest of several maxima, and says if it lies at an end."""

import math

import pytest

from caveat.errors import ParameterError
from caveat.evaluation import BestScale, search_scale


def bump(scale: float, at: float, height: float, width: float) -> float:
    return height * math.exp(-0.5 * (math.log(scale / at) / width) ** 2)


def test_the_highest_of_two_maxima():
    def objective(scale: float) -> float:
        return bump(scale, 0.02, 1.0, 1.0) + bump(scale, 300.0, 1.2, 1.0)

    found = search_scale(objective, low=1e-4, high=1e4)
    assert math.log(found.scale) == pytest.approx(math.log(300.0), abs=1e-3)
    assert found.log_likelihood == pytest.approx(1.2, abs=1e-5)
    assert not found.at_edge


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_end_of_the_range_is_said(sign):
    found = search_scale(lambda k: sign * math.log(k), low=0.1, high=10.0)
    assert found.at_edge
    assert math.log(found.scale) == pytest.approx(sign * math.log(10.0), abs=1e-2)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-6])
def test_it_is_found_as_well_as_asked(tolerance):
    found = search_scale(
        lambda k: math.log(k) - k / 3.0, low=0.01, high=99.0, tolerance=tolerance
    )
    assert math.log(found.scale) == pytest.approx(math.log(3.0), abs=tolerance)


def test_a_cheaper_first_look_only_chooses_the_stretch():
    looked, refined = [], []

    def cheap(scale: float) -> float:
        looked.append(scale)
        return -(math.log(scale / 5.0) ** 2)

    def dear(scale: float) -> float:
        refined.append(scale)
        return -(math.log(scale / 5.2) ** 2)

    found = search_scale(dear, low=1e-3, high=1e3, first_look=cheap)
    assert len(looked) == 25
    assert math.log(found.scale) == pytest.approx(math.log(5.2), abs=1e-3)
    step = math.log(1e6) / 24
    assert all(abs(math.log(k / 5.0)) < 2 * step for k in refined)


def test_densities_that_are_not_there():
    assert search_scale(lambda k: -math.inf, low=0.1, high=10.0) == BestScale(
        pytest.approx(math.nan, nan_ok=True), -math.inf
    )
    half = search_scale(
        lambda k: math.nan if k < 1 else -abs(math.log(k / 3)), low=0.1, high=10.0
    )
    assert half.scale == pytest.approx(3.0, rel=1e-2)


def test_bad_range():
    for low, high in ((1.0, 1.0), (0.0, 1.0), (2.0, 1.0)):
        with pytest.raises(ParameterError, match=r"low"):
            search_scale(lambda k: k, low=low, high=high)
