"""Agents in training: shared randomness, interruption."""

from dataclasses import replace

import numpy as np

from caveat.papers.rl.training import POLICIES, AgentPlan, Run, train

PLAN = AgentPlan(2, dict.fromkeys(POLICIES, 4), 1, 5, 400, 200)


def test_agents_of_a_seed_share_their_random_steps(tmp_path):
    runs = [Run(policy, PLAN, tmp_path / "none.npz") for policy in POLICIES]
    for run in runs:
        run.advance()
    for other in runs[1:]:
        np.testing.assert_array_equal(other.rewards, runs[0].rewards)


def test_without_doubling_the_reward_for_proximity_is_smaller(tmp_path):
    """In the same worlds and with the same random moves."""
    names = ("thompson", "thompson_single")
    plain, single = (Run(name, PLAN, tmp_path / "none.npz") for name in names)
    for run in (plain, single):
        run.advance()
    np.testing.assert_array_equal(plain.worlds.position, single.worlds.position)
    assert (single.rewards < plain.rewards).all()


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr("caveat.papers.rl.training._PER_CHECKPOINT", 2)
    whole = train("thompson", PLAN, tmp_path / "whole.npz")
    path, shorter = tmp_path / "state.npz", replace(PLAN, n_batches={"thompson": 2})
    train("thompson", shorter, path)
    rest = train("thompson", PLAN, path)
    assert rest.rewards == whole.rewards
    for name, layer in whole.network.items():
        np.testing.assert_array_equal(layer, rest.network[name])
