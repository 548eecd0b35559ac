"""What is remembered, and how it is drawn."""

import numpy as np
import torch

from caveat.rl.qlearning.memory import ReplayMemory
from tests.statistics import assert_mean_is


def filled(n_transitions, capacity=5, n_agents=2):
    replay = ReplayMemory(
        capacity, 2, [np.random.default_rng(k) for k in range(n_agents)]
    )
    for k in range(n_transitions):
        replay.add(transition(k, n_agents))
    return replay


def transition(k, n_agents=2):
    """Numbers that tell the agent and the time apart."""
    agents = 100.0 * np.arange(n_agents)
    x = np.stack([agents + k, -agents - k], axis=1)
    return x, x + 0.5, np.full(n_agents, k % 3), agents + k, np.full(n_agents, k % 2)


def test_transitions_come_out_as_they_went_in():
    batch = filled(4).sample(50)
    assert batch.actions.dtype == np.int64
    for agent in range(2):
        times = batch.rewards[agent] - 100 * agent
        assert set(times.tolist()) == {0.0, 1.0, 2.0, 3.0}
        np.testing.assert_array_equal(
            batch.observations[agent, :, 0], times + 100 * agent
        )
        np.testing.assert_array_equal(
            batch.next_observations[agent], batch.observations[agent] + 0.5
        )
        np.testing.assert_array_equal(batch.actions[agent], times % 3)
        np.testing.assert_array_equal(batch.goes_on[agent], times % 2)


def test_agents_draw_rows_of_their_own():
    batch = filled(5).sample(50)
    assert (batch.rewards[0] != batch.rewards[1] - 100).any()


def test_a_full_memory_overwrites_one_at_random():
    replay = filled(5)
    before = replay.stored.copy()
    replay.add(transition(77))
    assert replay.size == 5
    for agent in range(2):
        changed = (replay.stored[agent] != before[agent]).any(1)
        assert changed.sum() == 1
        assert replay.stored[agent, changed][0, 0] == 100 * agent + 77


def test_overwriting_is_uniform():
    """After k more than there is room for, an old one survives with (1 - 1/n)^k."""
    replay = filled(30, capacity=20, n_agents=2_000)
    times = replay.stored[:, :, 0] - 100 * np.arange(2_000)[:, None]
    survivors = torch.from_numpy((times < 20).mean(1)).double()
    assert_mean_is(survivors, (1 - 1 / 20) ** 10)


def test_rows_are_drawn_uniformly_with_replacement():
    batch = filled(4, n_agents=1).sample(40_000)
    for k in range(4):
        assert_mean_is(torch.from_numpy(batch.rewards[0] == k).double(), 0.25)
