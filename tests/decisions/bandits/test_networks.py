"""Networks as models of rewards: their draws, and whether these concentrate."""

import numpy as np
import pytest
import torch

from caveat.decisions.bandits.agents import ThompsonAgent
from caveat.decisions.bandits.networks import DropoutRewards, EnsembleRewards
from caveat.decisions.bandits.problems import SmoothProblem
from caveat.decisions.bandits.replay import ReplayTraining
from caveat.decisions.bandits.runs import run_bandit
from caveat.errors import ParameterError, ShapeError
from tests.statistics import assert_mean_is, assert_variance_is

SMALL = ReplayTraining(hidden=(16,), n_steps=20, learning_rate=0.01)
CONTEXTS = np.random.default_rng(0).normal(size=(6, 2))


def learned(model, n_rounds=100, batch=10):
    rounds = SmoothProblem().rounds(n_rounds, 0)
    arms = np.random.default_rng(1).integers(5, size=n_rounds)
    for start in range(0, n_rounds, batch):
        rows = np.arange(start, start + batch)
        gains = rounds.rewards[rows, arms[rows]]
        model.partial_fit(rounds.contexts[rows], arms[rows], gains)
    return model


def spread(model):
    draws = np.stack([model.function(t)(CONTEXTS) for t in range(40)])
    return draws.std(0, ddof=1).mean()


def test_rows_have_draws_with_the_moments_of_the_functions():
    """One hidden layer: the spread of a row is exactly f/(1-f) sum (w h)²."""
    model = learned(DropoutRewards(2, 5, drop_rate=0.3, training=SMALL, seed=0))
    same = np.repeat(CONTEXTS[:1], 4000, 0)
    drawn = torch.from_numpy(model.sample(same, 0))
    assert_mean_is(drawn, torch.from_numpy(model.mean(CONTEXTS[:1])[0]))
    net = model.network
    x = torch.from_numpy(CONTEXTS[:1]).float()
    parts = net[3].weight * torch.relu(net[0](x))  # shape: (arms, units)
    scale = model.mean(CONTEXTS[:1])[0, 0] / float(net(x)[0, 0])
    expected = 0.3 / 0.7 * parts.square().sum(1) * scale**2
    assert_variance_is(drawn, expected.double())


def test_draws_are_functions_by_number():
    for model in (
        learned(DropoutRewards(2, 5, training=SMALL, seed=0), 20),
        learned(EnsembleRewards(2, 5, n_members=3, training=SMALL, seed=0), 20),
    ):
        draw = model.function(3)
        assert draw(CONTEXTS).shape == (6, 5)
        np.testing.assert_allclose(draw(CONTEXTS[:2]), draw(CONTEXTS)[:2], atol=1e-5)
        others = [model.function(t)(CONTEXTS) for t in range(20)]
        assert any(not np.allclose(other, draw(CONTEXTS)) for other in others)


def test_members_are_the_draws_of_an_ensemble():
    model = learned(EnsembleRewards(2, 5, n_members=3, training=SMALL, seed=2), 20)
    expected = [model.function(7 + i)(CONTEXTS)[i] for i in range(len(CONTEXTS))]
    np.testing.assert_allclose(model.sample(CONTEXTS, 7), expected)
    distinct = {model.function(t)(CONTEXTS).tobytes() for t in range(60)}
    assert len(distinct) == 3
    members = np.stack([np.frombuffer(d).reshape(6, 5) for d in distinct])
    np.testing.assert_allclose(members.mean(0), model.mean(CONTEXTS), atol=1e-5)


def test_a_falling_rate_concentrates_where_a_fixed_one_does_not():
    """From 100 to 800 rounds a posterior's spread would fall to 0.35 of what it was."""

    def model(after):
        return DropoutRewards(
            2, 5, drop_rate=0.3, anneal_after=after, training=SMALL, seed=0
        )

    early, fixed, falling = (
        learned(model(after), n) for after, n in ((None, 100), (None, 800), (20, 800))
    )
    assert spread(fixed) > 0.5 * spread(early)
    assert spread(falling) < 0.65 * spread(fixed)
    assert fixed.drop_rate == 0.3
    odds = falling.drop_rate / (1 - falling.drop_rate)
    assert odds == pytest.approx(0.3 / 0.7 * 20 / 800)


@pytest.mark.parametrize("kind", [DropoutRewards, EnsembleRewards])
def test_thompson_sampling_beats_chance(kind):
    problem = SmoothProblem()
    regret = []
    for seed in range(2):
        agent = ThompsonAgent(kind(2, 5, training=SMALL, seed=seed), initial_pulls=2)
        run = run_bandit(problem, agent, n_rounds=300, batch_size=10, seed=seed)
        chance = problem.rounds(300, seed).uniform_regret().sum()
        regret.append(run.regret.sum() / chance)
    assert np.mean(regret) < 0.7


def test_same_seed_same_draws():
    samples = [
        learned(DropoutRewards(2, 5, training=SMALL, seed=s), 20).sample(CONTEXTS, 0)
        for s in (4, 4, 5)
    ]
    assert np.array_equal(samples[0], samples[1])
    assert not np.allclose(samples[0], samples[2])


def test_bad_input():
    with pytest.raises(ParameterError, match="drop_rate must lie strictly between"):
        DropoutRewards(2, 5, drop_rate=0.0)
    with pytest.raises(ParameterError, match=r"row_share must lie in \(0, 1\]. Got 0"):
        EnsembleRewards(2, 5, row_share=0)
    with pytest.raises(ParameterError, match="n_members must be at least 1"):
        EnsembleRewards(2, 5, n_members=0)
    model = EnsembleRewards(2, 5, training=SMALL)
    with pytest.raises(ShapeError, match=r"shape \(rows, 2\)"):
        model.sample(np.ones((3, 4)), 0)
    with pytest.raises(ParameterError, match="from 0 to 4"):
        model.partial_fit(CONTEXTS, np.full(6, 5), np.zeros(6))
