"""Walls and rays, against a plain restatement."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from caveat.rl.eyes.geometry import WALLS, clear_way


def test_walls_are_a_box_and_two_boxes_open_to_the_left():
    assert WALLS.shape == (10, 4)
    sides = {tuple(sorted([tuple(w[:2]), tuple(w[2:])])) for w in WALLS.tolist()}
    assert ((10.0, 10.0), (10.0, 490.0)) in sides
    for left, right in ((100.0, 300.0), (400.0, 600.0)):
        assert ((right, 100.0), (right, 400.0)) in sides
        assert ((left, 100.0), (left, 400.0)) not in sides
        assert ((left, 100.0), (right, 100.0)) in sides
        assert ((left, 400.0), (right, 400.0)) in sides


def naive(start, ray):
    """Walls are horizontal or vertical, so a crossing is one division."""
    best = 1.0
    for x0, y0, x1, y1 in WALLS.tolist():
        axis = 0 if x0 == x1 else 1
        level, low, high = ((x0, *sorted((y0, y1))), (y0, *sorted((x0, x1))))[axis]
        if ray[axis] == 0.0:
            continue
        t = (level - start[axis]) / ray[axis]
        other = start[1 - axis] + t * ray[1 - axis]
        assume(min(abs(other - low), abs(other - high)) > 1e-6)  # at a corner: either
        if 0.0 < t < 1.0 and low < other < high:
            best = min(best, t)
    return best


coordinates = st.floats(0.0, 700.0)
lengths = st.floats(-120.0, 120.0)


@settings(max_examples=300, deadline=None)
@given(st.tuples(coordinates, coordinates), st.tuples(lengths, lengths))
def test_first_crossing_is_the_naive_one(start, ray):
    found = clear_way(np.array([start]), np.array([[ray]]))
    assert found[0, 0] == pytest.approx(naive(start, ray), rel=1e-9, abs=1e-9)


def test_many_rays_at_once_are_each_on_its_own():
    rng = np.random.default_rng(0)
    starts, rays = rng.uniform(0, 500, (20, 2)), rng.normal(0, 60, (20, 3, 2))
    together = clear_way(starts, rays)
    assert together.shape == (20, 3)
    for k in range(20):
        alone = clear_way(starts[k : k + 1], rays[k : k + 1])
        np.testing.assert_array_equal(together[k], alone[0])


def test_touching_a_wall_or_running_along_it_is_not_crossing_it():
    ends_on_it = clear_way(np.array([[50.0, 50.0]]), np.array([[[-40.0, 0.0]]]))
    along_it = clear_way(np.array([[10.0, 50.0]]), np.array([[[0.0, 60.0]]]))
    assert ends_on_it[0, 0] == along_it[0, 0] == 1.0
