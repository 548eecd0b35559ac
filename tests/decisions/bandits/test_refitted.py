"""Models of rewards made by a function of the user's."""

import numpy as np
import pytest
import torch
from torch import nn

import caveat
from caveat.decisions import EnsembleSampler
from caveat.decisions.bandits import (
    LinearProblem,
    RefittedRewards,
    ThompsonAgent,
    run_bandit,
)
from caveat.errors import ShapeError

PROBLEM = LinearProblem(n_features=3, n_arms=2)


class Bootstrap:
    """Fits an ensemble of least-squares planes to resampled rounds; notes its calls."""

    def __init__(self):
        self.sizes = []

    def __call__(self, contexts, arms, rewards):
        self.sizes.append(len(arms))
        rng = np.random.default_rng(len(arms))
        return EnsembleSampler([self._plane(rng, contexts, arms, rewards)] * 2, seed=0)

    def _plane(self, rng, contexts, arms, rewards):
        columns = []
        for k in range(2):
            rows = rng.choice(np.flatnonzero(arms == k), 40)
            plane = np.linalg.lstsq(contexts[rows], rewards[rows], rcond=None)[0]
            columns.append(plane)
        weights = torch.from_numpy(np.stack(columns, 1)).float()
        return lambda x: x @ weights


def test_fit_is_called_with_all_rounds():
    fit = Bootstrap()
    agent = ThompsonAgent(RefittedRewards(fit, 3, 2, every=40, seed=0))
    run = run_bandit(PROBLEM, agent, n_rounds=200, batch_size=10)
    assert fit.sizes == [40, 80, 120, 160, 200]
    chance = PROBLEM.rounds(200, 0).uniform_regret()
    assert run.regret[40:].sum() < 0.5 * chance[40:].sum()


def dropout_model(outputs=2):
    net = nn.Sequential(nn.Linear(3, 9), nn.Dropout(0.4), nn.Linear(9, outputs))
    model = RefittedRewards(
        lambda *rounds: caveat.MCDropout(net, seed=1), 3, 2, every=4, n_mean_draws=5
    )
    return model.partial_fit(np.ones((4, 3)), np.array([0, 1, 0, 1]), np.ones(4))


def test_draws_of_a_dropout_network():
    model = dropout_model()
    contexts = np.random.default_rng(0).normal(size=(6, 3))
    expected = [model.function(3 + i)(contexts)[i] for i in range(6)]
    np.testing.assert_allclose(model.sample(contexts, 3), expected, rtol=1e-5)
    draws = [model.function(t)(contexts) for t in range(5)]
    assert not np.allclose(draws[0], draws[1])
    np.testing.assert_allclose(model.mean(contexts), np.mean(draws, 0))


def test_before_the_first_fit_any_arm_may_be_best():
    model = RefittedRewards(Bootstrap(), 3, 2, seed=0)
    arms = model.sample(np.ones((200, 3)), 0).argmax(1)
    assert 60 < arms.sum() < 140  # five standard errors are 35
    assert model.sample(np.ones((0, 3)), 0).shape == (0, 2)


def test_bad_input():
    with pytest.raises(ShapeError, match=r"shape \(rows, 2\). Got \(4, 7\) for 4 rows"):
        dropout_model(outputs=7).mean(np.ones((4, 3)))
