"""Problems have the rewards that they say, and their regret."""

import numpy as np
import pytest
import torch

from caveat.decisions.bandits.problems import (
    BanditRounds,
    ClassificationProblem,
    LinearProblem,
    SmoothProblem,
    WheelProblem,
)
from caveat.errors import ParameterError, ShapeError
from tests.statistics import assert_mean_is, assert_variance_is

ROWS = np.random.default_rng(0).normal(2.0, 3.0, (30, 4))
TABLE = ClassificationProblem.standardised(ROWS, np.arange(30) % 3)
ALL = [LinearProblem(), SmoothProblem(), WheelProblem(), TABLE]


@pytest.mark.parametrize("problem", ALL, ids=lambda p: type(p).__name__)
def test_rounds_by_seed(problem):
    rounds, again, other = (problem.rounds(50, seed) for seed in (1, 1, 2))
    assert len(rounds) == 50
    assert rounds.contexts.shape == (50, problem.n_features)
    assert rounds.rewards.shape == rounds.means.shape == (50, problem.n_arms)
    assert np.array_equal(rounds.rewards, again.rewards)
    assert not np.array_equal(rounds.contexts, other.contexts)


@pytest.mark.parametrize("problem", ALL, ids=lambda p: type(p).__name__)
def test_noise(problem):
    rounds = problem.rounds(2000, 0)
    noise = torch.from_numpy(rounds.rewards - rounds.means)
    assert_mean_is(noise, 0.0)
    assert_variance_is(noise, getattr(problem, "noise_std", 0.0) ** 2)


def test_regret_restated():
    """E149."""
    means = np.array([[1.0, 3.0, 2.0], [0.0, 0.0, 1.5]])
    rounds = BanditRounds(np.zeros((2, 1)), means, means)
    assert rounds.regret(np.array([1, 0])).tolist() == [0.0, 1.5]
    np.testing.assert_allclose(rounds.uniform_regret(), [1.0, 1.0])


def test_linear_contexts_are_correlated():
    rounds = LinearProblem(3, 2, correlation=0.5).rounds(20_000, 0)
    found = np.corrcoef(rounds.contexts.T)
    np.testing.assert_allclose(found[~np.eye(3, dtype=bool)], 0.5, atol=0.03)
    least = np.linalg.lstsq(rounds.contexts, rounds.means, rcond=None)
    np.testing.assert_allclose(rounds.contexts @ least[0], rounds.means, atol=1e-9)


def test_smooth_functions_have_variance_one():
    """Over functions: one number per seed and arm, at the first context."""
    values = [SmoothProblem().rounds(1, seed).means[0] for seed in range(600)]
    assert_variance_is(torch.from_numpy(np.concatenate(values)), 1.0)


def test_wheel():
    rounds = WheelProblem(delta=0.6).rounds(20_000, 0)
    radius = np.linalg.norm(rounds.contexts, axis=1)
    outside = torch.from_numpy((radius > 0.6).astype(float))
    assert_mean_is(outside, 1 - 0.6**2)
    prizes = rounds.means == 50.0
    assert np.array_equal(prizes.any(1), radius > 0.6)
    for arm, quadrant in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)], start=1):
        signs = np.sign(rounds.contexts[prizes[:, arm]])
        assert (signs == quadrant).all()
    assert (rounds.means[~prizes[:, 1:].any(1), 0] == 1.2).all()


def test_classes_become_arms():
    rounds = TABLE.rounds(75, 0)
    assert (rounds.means.sum(1) == 1).all()
    np.testing.assert_allclose(rounds.uniform_regret(), 2 / 3)
    for start in (0, 30):  # all rows once before any of them again
        one_pass = rounds.contexts[start : start + 30]
        assert len(np.unique(one_pass, axis=0)) == 30
    np.testing.assert_allclose(TABLE.features.std(0), 1.0)
    row = int(np.argmax((TABLE.features == rounds.contexts[0]).all(1)))
    assert rounds.means[0].argmax() == TABLE.labels[row]


def test_constant_features_are_nought():
    problem = ClassificationProblem.standardised(np.ones((4, 2)), [0, 1, 0, 1])
    assert not problem.features.any()


def test_bad_input():
    with pytest.raises(ParameterError, match="correlation must lie in"):
        LinearProblem(correlation=1.0)
    with pytest.raises(ParameterError, match="delta must lie strictly between"):
        WheelProblem(delta=1.0)
    with pytest.raises(ParameterError, match="numbers from 0"):
        ClassificationProblem.standardised(ROWS[:2], [1, 2])
    with pytest.raises(ShapeError, match=r"Got \(30, 4\) and \(3,\)"):
        ClassificationProblem.standardised(ROWS, [0, 1, 2])
