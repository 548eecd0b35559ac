"""Kinematics, eyes, rewards and items, by the numbers of the original."""

import numpy as np
import pytest
import torch

from caveat.rl.eyes.worlds import (
    FOOD,
    N_ITEMS,
    NOTHING,
    OFFSETS,
    POISON,
    WALL,
    Worlds,
    displacement,
)
from tests.statistics import assert_mean_is

STRAIGHT = np.array([0])


def worlds(n_worlds=1, *, seed=0, **options):
    generators = [np.random.default_rng(seed + k) for k in range(n_worlds)]
    return Worlds(generators, **options)


def alone(position, heading, items=(), **options):
    """One world without items but those given as (x, y, kind)."""
    found = worlds(**options)
    state = found.state()
    state["position"][:] = position
    state["heading"][:] = heading
    state["items"][:] = np.nan
    state["kinds"][:] = 0
    for k, (x, y, kind) in enumerate(items):
        state["items"][0, k] = x, y
        state["kinds"][0, k] = kind
    found.load_state(state)
    return found


def test_displacements_and_headings_are_those_of_the_original():
    expected = [
        (2.710452458553, 3.217962542785, 0.7),
        (2.809621648934, 2.728745567748, 0.9),
        (2.211498218645, 3.232537983163, 0.5),
        (0.538060976392, 1.113870891107, 0.2),
        (1.006211082020, 0.719553496824, 1.2),
    ]
    way = displacement(np.full(5, 0.7), np.arange(5))
    np.testing.assert_allclose(way, np.array(expected)[:, :2], rtol=1e-11)
    for action, (x, y, heading) in enumerate(expected):
        world = alone((350.0, 250.0), 0.7)
        world.step(np.array([action]))
        np.testing.assert_allclose(
            world.position[0], (350.0 + x, 250.0 + y), rtol=1e-12
        )
        assert world.heading[0] == pytest.approx(heading)


def test_displacement_is_the_average_of_two_turning_wheels():
    """Restated from the original: each wheel turns about the other."""

    def turn(angle, v):
        c, s = np.cos(angle), np.sin(angle)
        return np.array([v[0] * c + v[1] * s, -v[0] * s + v[1] * c])

    rates = [(1, 1), (0.8, 1), (1, 0.8), (0.5, 0), (0, 0.5)]
    for heading in (0.0, 1.0, 4.0):
        for action, (r1, r2) in enumerate(rates):
            v = 5.0 * np.array([np.cos(heading), -np.sin(heading)])
            expected = (turn(-r1, v) - turn(r2, v)) / 2
            found = displacement(np.array([heading]), np.array([action]))[0]
            np.testing.assert_allclose(found, expected, atol=1e-12)
    straight = displacement(np.array([0.3]), STRAIGHT)
    assert np.linalg.norm(straight) == pytest.approx(5 * np.sin(1.0))


def test_a_wall_stops_the_agent_but_not_its_turn():
    world = alone((12.0, 250.0), 3 * np.pi / 2)
    world.step(np.array([1]))
    np.testing.assert_array_equal(world.position[0], (12.0, 250.0))
    assert world.heading[0] == pytest.approx(3 * np.pi / 2 + 0.2)


def test_eyes_and_reward_at_a_wall_are_those_of_the_original():
    world = alone((30.0, 250.0), 3 * np.pi / 2)
    expected = [
        27.334022493,
        22.789878546,
        20.641700480,
        20.0,
        20.641700480,
        22.789878546,
        27.334022493,
        37.016314354,
        63.427153875,
    ]
    np.testing.assert_allclose(85 * world.readings.distance[0], expected, rtol=1e-9)
    assert (world.readings.kind == WALL).all()
    assert world.step(STRAIGHT)[0] == pytest.approx(0.684901101355, rel=1e-11)
    plain = alone((30.0, 250.0), 3 * np.pi / 2, doubled=False)
    assert plain.step(STRAIGHT)[0] == pytest.approx(0.342450550677, rel=1e-11)


def test_reward_in_the_open_is_at_most_1_1_and_turning_costs_a_tenth():
    """In the middle of the gap of 100 between the boxes an agent sees two walls."""
    open_space = (350.0, 250.0)
    world = alone(open_space, 0.0)
    seen = np.where(world.readings.kind == WALL, world.readings.distance, 1.0).mean()
    assert 0.5 < seen < 1.0
    assert world.step(STRAIGHT)[0] == pytest.approx(1.1)
    assert alone(open_space, 0.0).step(np.array([1]))[0] == pytest.approx(1.0)
    undoubled = alone(open_space, 0.0, doubled=False).step(STRAIGHT)[0]
    assert undoubled == pytest.approx(seen * (1.1 if seen > 0.75 else 1.0))


def test_eyes_are_not_symmetric():
    np.testing.assert_allclose(OFFSETS, np.arange(-3, 6) / 4)


def test_an_item_is_seen_at_the_foot_of_its_perpendicular():
    """Straight ahead is eye 3; the item lies 30 ahead and 8 aside."""
    world = alone((350.0, 250.0), 0.0, [(358.0, 280.0, FOOD)])
    distance, kind = (reading[0] for reading in world.readings)
    assert kind[3] == FOOD
    assert distance[3] == pytest.approx(30.0 / 85.0)
    beside = alone((350.0, 250.0), 0.0, [(360.5, 280.0, FOOD)])
    assert beside.readings.kind[0, 3] == NOTHING
    behind = alone((350.0, 250.0), 0.0, [(350.0, 220.0, FOOD)])
    assert behind.readings.kind[0, 3] == NOTHING


def test_of_several_things_the_nearest_is_seen():
    items = [(350.0, 300.0, POISON), (350.0, 280.0, FOOD), (350.0, 320.0, POISON)]
    for order in (items, items[::-1]):
        readings = alone((350.0, 250.0), 0.0, order).readings
        assert readings.kind[0, 3] == FOOD
        assert readings.distance[0, 3] == pytest.approx(30.0 / 85.0)


def test_an_item_behind_a_wall_is_neither_seen_nor_eaten():
    """The wall x = 300 stands between (294, 250) and (306, 250)."""
    world = alone((294.0, 250.0), np.pi / 2, [(306.0, 250.0, FOOD)])
    assert world.readings.kind[0, 3] == WALL
    assert world.readings.distance[0, 3] == pytest.approx(6.0 / 85.0)
    assert world.step(STRAIGHT)[0] < 1.2
    assert world.kinds[0, 0] == FOOD


@pytest.mark.parametrize(("kind", "gain"), [(FOOD, 5.0), (POISON, -6.0)])
def test_what_is_within_reach_is_eaten(kind, gain):
    world = alone((350.0, 250.0), 0.0, [(350.0, 274.0, kind)])  # 24 before the move
    reward = world.step(STRAIGHT)[0]
    assert reward == pytest.approx(1.1 + gain)
    assert world.kinds[0, 0] == 0
    assert np.isnan(world.items[0, 0]).all()


def test_two_items_can_be_eaten_at_once():
    items = [(350.0, 266.0, FOOD), (352.0, 266.0, POISON)]
    assert alone((350.0, 250.0), 0.0, items).step(STRAIGHT)[0] == pytest.approx(0.1)


def test_inputs_are_one_but_for_what_is_seen():
    world = alone((350.0, 250.0), 0.0, [(358.0, 280.0, POISON)])
    inputs = world.readings.inputs()
    assert inputs.shape == (1, 27) and inputs.dtype == np.float32
    eyes = inputs.reshape(9, 3)
    distance, kind = (reading[0] for reading in world.readings)
    for eye in range(9):
        expected = [1.0, 1.0, 1.0]
        if kind[eye] != NOTHING:
            expected[kind[eye]] = distance[eye]
        np.testing.assert_allclose(eyes[eye], expected, rtol=1e-6)
    assert {WALL, POISON, NOTHING} <= set(kind.tolist())


def test_the_beginning():
    many = worlds(200)
    np.testing.assert_array_equal(many.position, np.full((200, 2), 50.0))
    assert (many.heading == 0.0).all()
    assert many.items.min(axis=(0, 1)) == pytest.approx([20.0, 20.0], abs=1.0)
    assert many.items.max(axis=(0, 1)) == pytest.approx([680.0, 480.0], abs=1.0)
    assert set(np.unique(many.kinds)) == {FOOD, POISON}
    food = torch.from_numpy((many.kinds == FOOD).reshape(-1)).double()
    assert_mean_is(food, 0.5)


def test_items_come_back_at_every_tenth_tick_with_a_quarter_of_chance():
    many = worlds(400)
    state = many.state()
    state["items"][:] = np.nan
    state["kinds"][:] = 0
    many.load_state(state)
    turning = np.full(400, 3)  # on the spot, nearly: nothing is eaten from (50, 50)
    for tick in range(1, 101):
        before = (many.kinds > 0).sum()
        many.step(turning)
        if tick % 10:
            assert (many.kinds > 0).sum() <= before
    grown = torch.from_numpy((many.born > 0).sum(1)).double()
    assert_mean_is(grown, 2.5)  # also counts those eaten: their slot keeps a date


def test_there_are_never_more_than_thirty():
    one = worlds()
    for _ in range(300):
        one.step(np.array([3]))
        assert (one.kinds[0] > 0).sum() <= N_ITEMS


def test_old_items_go_with_a_tenth_of_chance_at_every_hundredth_tick():
    many = worlds(300)
    state = many.state()
    state["clock"] = np.array(5_098)
    state["kinds"][:, 0] = FOOD
    state["born"][:, 1:] = 5_000
    state["items"][:, 0] = 650.0, 450.0
    many.load_state(state)
    turning = np.full(300, 3)
    many.step(turning)
    assert (many.kinds[:, 0] == FOOD).all()
    many.step(turning)  # tick 5100
    gone = torch.from_numpy(many.born[:, 0] == 5_100).double()
    assert_mean_is(gone, 0.1)
    assert (many.born[:, 1:] == 5_000).mean() > 0.98


def test_random_moves_earn_what_they_earn_in_the_original():
    """0.71-0.73 with doubled proximity, 0.55-0.58 without (60,000 ticks each)."""
    for doubled, low, high in ((True, 0.71, 0.73), (False, 0.55, 0.58)):
        many = worlds(100, doubled=doubled)
        rng = np.random.default_rng(1)
        for _ in range(300):  # away from the corner
            many.step(rng.integers(0, 5, 100))
        total = sum(many.step(rng.integers(0, 5, 100)) for _ in range(1_200)) / 1_200
        error = total.std(ddof=1) / 10
        assert low - 4 * error < total.mean() < high + 4 * error
        assert error < 0.012


def test_a_world_does_the_same_alone_and_among_others():
    many = worlds(4)
    single = worlds(1, seed=2)
    rng = np.random.default_rng(0)
    for _ in range(400):
        actions = rng.integers(0, 5, 4)
        rewards = many.step(actions)
        assert single.step(actions[2:3])[0] == rewards[2]
        np.testing.assert_array_equal(single.readings.distance[0], many.readings[0][2])
    np.testing.assert_array_equal(single.items[0], many.items[2])


def test_state_continues_exactly():
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 5, (200, 3))
    first, second = worlds(3), worlds(3, seed=50)
    for row in actions[:100]:
        first.step(row)
    stored = {name: array.copy() for name, array in first.state().items()}
    expected = [first.step(row) for row in actions[100:]]
    second.load_state(stored)
    found = [second.step(row) for row in actions[100:]]
    np.testing.assert_array_equal(found, expected)
