"""Acting, remembering and learning, step by step."""

import numpy as np
import pytest
import torch

from caveat.errors import ShapeError
from caveat.rl import Annealed, DQNFleet, QSettings
from tests.statistics import assert_mean_is

EARLY = {"random_steps": 0, "learning_starts": 0}


def fleet(n_agents=2, make=QSettings.thompson, **changes):
    settings = make(**{**EARLY, "hidden": (6, 5), "capacity": 50, **changes})
    return DQNFleet(4, 3, settings=settings, seeds=range(n_agents))


def steps(found, count, seed=0):
    """Random transitions, each followed by learning; actions and states of the way."""
    rng = np.random.default_rng(seed)
    n_agents, actions = len(found), []
    x = rng.normal(size=(n_agents, 4))
    for _ in range(count):
        actions.append(found.act(x))
        following, reward = rng.normal(size=(n_agents, 4)), rng.normal(size=n_agents)
        found.observe(x, actions[-1], reward, following, rng.random(n_agents) < 0.1)
        found.learn()
        x = following
    return np.array(actions)


def test_same_seed_same_agent():
    first, second = fleet(), fleet()
    np.testing.assert_array_equal(steps(first, 30), steps(second, 30))
    for a, b in zip(first.networks.weights, second.networks.weights, strict=True):
        np.testing.assert_array_equal(a, b)


def test_policies_begin_with_the_same_weights_and_moves():
    first = fleet(random_steps=20)
    second = fleet(make=QSettings.epsilon_greedy, random_steps=20)
    np.testing.assert_array_equal(first.networks.weights[0], second.networks.weights[0])
    np.testing.assert_array_equal(steps(first, 20), steps(second, 20))


def test_one_step_of_learning_is_that_of_the_formula():
    """Without dropout: w - lr (L2 w + sum of gradients) / batch, restated in torch."""
    found = fleet(
        1, QSettings.epsilon_greedy, batch_size=8, l2_coefficient=0.5, learning_rate=0.1
    )
    rng = np.random.default_rng(0)
    x, following = rng.normal(size=(2, 1, 4))
    found.observe(x, np.array([2]), np.array([1.5]), following)  # all rows are this one
    parameters = [
        torch.tensor(array[0], requires_grad=True)
        for pair in zip(found.networks.weights, found.networks.biases, strict=True)
        for array in pair
    ]

    def q(inputs):
        value = torch.tensor(inputs, dtype=torch.float32)
        for k in range(0, 6, 2):
            value = (value.relu() if k else value) @ parameters[k] + parameters[k + 1]
        return value[0]

    target = 1.5 + 0.7 * q(following).max().item()
    ((q(x)[2] - target) ** 2 / 2).backward()
    found.learn()
    updated = zip(found.networks.weights, found.networks.biases, strict=True)
    after = [array[0] for pair in updated for array in pair]
    for k, (old, new) in enumerate(zip(parameters, after, strict=True)):
        decay = 0.5 * old.detach() / 8 if k % 2 == 0 else 0.0
        expected = old.detach() - 0.1 * (decay + old.grad)
        np.testing.assert_allclose(new, expected, atol=1e-6)


def test_nothing_follows_the_end_of_an_episode():
    values = []
    for terminated in (False, True):
        found = fleet(1, QSettings.epsilon_greedy, learning_rate=0.5)
        x = np.ones((1, 4))
        for _ in range(300):
            found.observe(x, np.array([0]), np.array([1.0]), x, terminated)
            found.learn()
        values.append(found.networks.averaged(x[:, None].astype("f"))[0, 0, 0])
    assert values[1] == pytest.approx(1.0, abs=0.01)
    assert values[0] > 1.5


def test_learning_waits():
    found = fleet(learning_starts=10)
    before = found.networks.weights[0].copy()
    steps(found, 10)
    np.testing.assert_array_equal(found.networks.weights[0], before)
    steps(found, 1)
    assert (found.networks.weights[0] != before).any()


def test_moves_are_random_at_first_and_then_as_epsilon_says():
    epsilon = Annealed(start=10, end=110, least=0.2)
    found = fleet(make=QSettings.epsilon_greedy, random_steps=30, epsilon=epsilon)
    assert found.exploration_rate == 1.0
    found.age = 29
    assert found.exploration_rate == 1.0
    found.age = 30
    assert found.exploration_rate == pytest.approx(0.8)
    found.age = 1_000
    assert found.exploration_rate == 0.2


def test_random_moves_are_uniform_and_as_frequent_as_epsilon():
    found = fleet(
        3_000, QSettings.epsilon_greedy, epsilon=lambda age: 0.3, batch_size=1
    )
    x = np.ones((3_000, 4))
    other = found.act(x) != found.exploit(x)  # a random move is the best by 1/3
    assert_mean_is(torch.from_numpy(other).double(), 0.2)
    found.settings = QSettings.thompson(random_steps=1)
    for action in range(3):
        assert_mean_is(torch.from_numpy(found.act(x) == action).double(), 1 / 3)


def test_thompson_follows_the_probability_that_an_action_is_best():
    """Share of actions over passes = share over all masks, enumerated."""
    found = fleet(1, drop_rates=(0.0, 0.0, 0.5), hidden=(6, 4))
    weight, bias = (a[-1][0] for a in (found.networks.weights, found.networks.biases))
    x = np.full((1, 4), 0.7)
    hidden = x[:, None].astype("f")
    for w, b in zip(found.networks.weights[:2], found.networks.biases[:2], strict=True):
        hidden = np.maximum(hidden @ w + b, 0.0)
    masks = np.array(list(np.ndindex(2, 2, 2, 2)))
    best = ((2.0 * masks * hidden[0, 0]) @ weight + bias).argmax(-1)
    drawn = np.array([found.act(x)[0] for _ in range(2_000)])
    for action in range(3):
        share = torch.from_numpy(drawn == action).double()
        assert_mean_is(share, float((best == action).mean()))
    assert len(set(best.tolist())) > 1
    assert len({int(found.exploit_average(x)[0]) for _ in range(20)}) == 1


def test_state_continues_exactly():
    first, second = fleet(), fleet()
    steps(first, 60)
    stored = {name: array.copy() for name, array in first.state().items()}
    assert all(array.dtype != object for array in stored.values())
    expected = steps(first, 30, seed=1)
    second.load_state(stored)
    np.testing.assert_array_equal(steps(second, 30, seed=1), expected)
    np.testing.assert_array_equal(first.networks.weights[1], second.networks.weights[1])
    assert second.age == first.age


def test_wrong_shapes_are_told():
    found = fleet()
    with pytest.raises(ShapeError, match=r"shape \(2, 4\), a row per agent"):
        found.act(np.ones((2, 5)))


def test_observations_may_be_read_only():
    x = np.ones((2, 4), dtype="f")
    x.flags.writeable = False
    assert fleet().act(x).shape == (2,)
