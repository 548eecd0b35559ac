"""Agents: who explores how often."""

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import torch
from torch.nn.functional import one_hot

from caveat.decisions.bandits.agents import (
    EpsilonGreedyAgent,
    ThompsonAgent,
    UniformAgent,
)
from caveat.decisions.bandits.linear import LinearRewards
from caveat.errors import ParameterError
from tests.statistics import assert_mean_is


def knowing_model(seed=0):
    """A model that has seen arm 2 give most."""
    model = LinearRewards(1, 4, seed=seed)
    arms = np.tile(np.arange(4), 25)
    return model.partial_fit(np.ones((100, 1)), arms, 1.0 * (arms == 2))


def frequencies_are(arms, expected):
    hits = one_hot(torch.from_numpy(arms), len(expected)).double()
    assert_mean_is(hits, torch.tensor(expected, dtype=torch.float64))


def test_epsilon_greedy_explores_with_probability_epsilon():
    agent = EpsilonGreedyAgent(knowing_model(), epsilon=0.2, seed=0)
    arms = agent.act(np.ones((4000, 1)))
    frequencies_are(arms, [0.05, 0.05, 0.85, 0.05])


def test_greedy_takes_the_best_mean():
    agent = EpsilonGreedyAgent(knowing_model(), epsilon=0.0, seed=0)
    assert set(agent.act(np.ones((50, 1)))) == {2}


def test_uniform():
    agent = UniformAgent(5, seed=1)
    assert agent.partial_fit(np.ones((1, 1)), np.zeros(1), np.zeros(1)) is agent
    frequencies_are(agent.act(np.ones((5000, 1))), [0.2] * 5)


def test_thompson_chooses_by_the_probability_of_being_best():
    """Arms that were never tried are alike: each is the best one in its turn."""
    agent = ThompsonAgent(LinearRewards(1, 3, seed=0))
    frequencies_are(agent.act(np.ones((3000, 1))), [1 / 3] * 3)


def test_thompson_two_arms_exactly():
    """The chance that one Student-t exceeds another, by an independent integral."""
    model = LinearRewards(1, 2, variance_prior=(50.0, 50.0), seed=5)
    arms = np.array([0] * 5 + [1] * 9)
    contexts = np.linspace(-1, 1, 14)[:, None]
    model.partial_fit(contexts, arms, np.where(arms == 0, 0.3, 0.0) + contexts[:, 0])
    where = np.array([0.4, 1.0])
    moments = []
    for k in range(2):
        posterior = model.posterior(k)
        scale = np.sqrt(
            posterior.rate
            / posterior.shape
            * where
            @ np.linalg.solve(posterior.lower @ posterior.lower.T, where)
        )
        moments.append((where @ posterior.mean, scale, 2 * posterior.shape))
    (m0, s0, d0), (m1, s1, d1) = moments
    first, second = scipy.stats.t(d0, m0, s0), scipy.stats.t(d1, m1, s1)
    best, _ = scipy.integrate.quad(lambda u: first.pdf(u) * second.cdf(u), -10, 10)
    assert 0.2 < best < 0.8
    chosen = ThompsonAgent(model).act(np.full((6000, 1), 0.4))
    frequencies_are(chosen, [best, 1 - best])


@pytest.mark.parametrize("kind", [ThompsonAgent, EpsilonGreedyAgent])
def test_arms_are_tried_in_turn_first(kind):
    agent = kind(knowing_model(), initial_pulls=2)
    first = agent.act(np.ones((5, 1)))
    second = agent.act(np.ones((3, 1)))
    assert [*first, *second] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_draws_go_on():
    """Further calls draw further functions, as one call for all would have."""
    contexts = np.random.default_rng(0).normal(size=(20, 1))
    whole = ThompsonAgent(LinearRewards(1, 4, seed=3)).act(contexts)
    agent = ThompsonAgent(LinearRewards(1, 4, seed=3))
    parts = np.concatenate([agent.act(contexts[:7]), agent.act(contexts[7:])])
    assert np.array_equal(whole, parts)


def test_bad_input():
    with pytest.raises(ParameterError, match=r"epsilon must lie in \[0, 1\]. Got 1.5"):
        EpsilonGreedyAgent(knowing_model(), epsilon=1.5)
    with pytest.raises(ParameterError, match="n_arms must be at least 1"):
        UniformAgent(0)
