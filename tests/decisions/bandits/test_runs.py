"""Playing, and regret over seeds."""

import numpy as np
import pytest
import torch

from caveat.decisions.bandits.agents import (
    EpsilonGreedyAgent,
    ThompsonAgent,
    UniformAgent,
)
from caveat.decisions.bandits.linear import LinearRewards
from caveat.decisions.bandits.problems import BanditRounds, LinearProblem
from caveat.decisions.bandits.runs import RegretCurve, compare_agents, run_bandit
from caveat.errors import ParameterError
from tests.statistics import assert_mean_is


class Known:
    """Three arms worth 0, 1 and 3, whatever the context."""

    n_features, n_arms = 1, 3

    def rounds(self, n_rounds, seed):
        means = np.tile([0.0, 1.0, 3.0], (n_rounds, 1))
        return BanditRounds(np.ones((n_rounds, 1)), means, means)


def test_uniform_has_its_closed_form():
    """E149: 3 - (0 + 1 + 3)/3 a round."""
    expected = Known().rounds(200, 0).uniform_regret().sum()
    assert expected == pytest.approx(200 * 5 / 3)
    finals = [
        run_bandit(Known(), UniformAgent(3, seed=s), n_rounds=200).regret.sum()
        for s in range(200)
    ]
    assert_mean_is(torch.tensor(finals, dtype=torch.float64), expected)


def test_what_is_recorded():
    run = run_bandit(Known(), UniformAgent(3, seed=0), n_rounds=30, batch_size=7)
    worth = np.array([0.0, 1.0, 3.0])[run.arms]
    np.testing.assert_array_equal(run.rewards, worth)
    np.testing.assert_array_equal(run.cumulative_regret, np.cumsum(3 - worth))


class Witness:
    """Always arm 0; notes what it was told."""

    def __init__(self):
        self.told = []

    def act(self, contexts):
        return np.zeros(len(contexts), dtype=np.int64)

    def partial_fit(self, contexts, arms, rewards):
        self.told.append((len(contexts), rewards.tolist()))
        return self


def test_rewards_come_back_in_batches():
    agent = Witness()
    run = run_bandit(LinearProblem(), agent, n_rounds=8, batch_size=3, seed=4)
    rewards = LinearProblem().rounds(8, 4).rewards[:, 0]
    assert [size for size, _ in agent.told] == [3, 3, 2]
    assert [r for _, part in agent.told for r in part] == rewards.tolist()
    np.testing.assert_array_equal(run.rewards, rewards)


def test_thompson_learns():
    agents = {
        "Thompson": lambda s: ThompsonAgent(LinearRewards(10, 5, seed=s)),
        "epsilon": lambda s: EpsilonGreedyAgent(LinearRewards(10, 5, seed=s), seed=s),
        "uniform": lambda s: UniformAgent(5, seed=s),
    }
    thompson, epsilon, uniform = compare_agents(
        LinearProblem(), agents, n_rounds=600, seeds=range(4), batch_size=5
    )
    assert thompson.name == "Thompson"
    assert thompson.cumulative.shape == (4, 600)
    assert thompson.mean[-1] < epsilon.mean[-1] < 0.5 * uniform.mean[-1]
    late = thompson.cumulative[:, -1] - thompson.cumulative[:, -150]
    assert late.mean() < 0.05 * uniform.mean[-1] / 4


def test_standard_error_restated():
    """E151."""
    curve = RegretCurve("a", np.array([[1.0, 2.0], [3.0, 6.0], [5.0, 4.0]]))
    np.testing.assert_allclose(curve.mean, [3.0, 4.0])
    np.testing.assert_allclose(curve.standard_error, [2 / np.sqrt(3)] * 2)
    assert curve.final.tolist() == [2.0, 6.0, 4.0]
    assert np.isnan(RegretCurve("a", np.ones((1, 4))).standard_error).all()


def test_thinned():
    curve = RegretCurve("a", np.arange(12.0).reshape(1, 12)).thinned(3)
    assert curve.rounds.tolist() == [3, 6, 9, 12]
    assert curve.cumulative.tolist() == [[2.0, 5.0, 8.0, 11.0]]
    assert curve.thinned(2).rounds.tolist() == [6, 12]


def test_bad_input():
    with pytest.raises(ParameterError, match="n_rounds must be at least 1"):
        run_bandit(Known(), UniformAgent(3), n_rounds=0)
    with pytest.raises(ParameterError, match="batch_size must be at least 1"):
        run_bandit(Known(), UniformAgent(3), n_rounds=3, batch_size=0)
    with pytest.raises(ParameterError, match=r"one agent and one seed\. Got 0 and 2"):
        compare_agents(Known(), {}, n_rounds=3, seeds=[0, 1])
