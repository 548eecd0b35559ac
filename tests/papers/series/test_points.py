"""Points and the curves they lie on."""

import math

import numpy as np
import pytest

from caveat.papers.series.points import Curve, Places, Point

X, LATER = np.linspace(-1.5, 1.5, 11), np.array([2.0, 3.0])


def test_places_are_in_order():
    places = Places.of([("later", LATER, LATER), ("train", X, 2 * X)])
    assert places.part == ("train",) * 11 + ("later",) * 2
    np.testing.assert_array_equal(places.x, [*X, 2.0, 3.0])
    np.testing.assert_array_equal(places.y[:11], 2 * X)


def point(x, y, mean, sd, noise=0.0):
    return Point("m", "GP", 0, 0, "later", x, y, mean, sd, noise)


def test_coverage_counts_two_deviations_with_and_without_noise():
    curve = Curve(
        (
            point(0.0, 0.0, 1.9, 1.0),
            point(1.0, 0.0, 2.1, 1.0, 0.5),
            point(2.0, 0.0, -3.0, 1.0, 0.5),
        )
    )
    assert curve.coverage(noise=False) == pytest.approx(1 / 3)
    assert curve.coverage(noise=True) == pytest.approx(2 / 3)
    assert curve.between(0.5, 2.0).coverage(noise=False) == 0.0
    assert curve.error == pytest.approx(math.sqrt((1.9**2 + 2.1**2 + 9) / 3))
