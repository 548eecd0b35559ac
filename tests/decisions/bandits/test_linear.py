"""Linear models of rewards: draws, sharing, and where they concentrate."""

import numpy as np
import pytest
import torch

from caveat.decisions.bandits.linear import LinearRewards, SharedLinearRewards
from caveat.errors import ParameterError, ShapeError
from tests.statistics import assert_mean_is

RNG = np.random.default_rng(0)


def rounds(n, n_arms=3, n_features=2):
    rng = np.random.default_rng(n)
    contexts = rng.normal(size=(n, n_features))
    return contexts, rng.integers(n_arms, size=n), rng.normal(size=n)


def test_arms_are_learned_apart():
    contexts, arms, rewards = rounds(60)
    together = LinearRewards(2, 3, drop_rate=0.2, seed=0)
    together.partial_fit(contexts, arms, rewards)
    new = RNG.normal(size=(5, 2))
    for k in range(3):
        own = arms == k
        alone = LinearRewards(2, 3, drop_rate=0.2, seed=0)
        alone.partial_fit(contexts[own], arms[own], rewards[own])
        np.testing.assert_allclose(alone.mean(new)[:, k], together.mean(new)[:, k])


@pytest.mark.parametrize("after", [None, 20])
def test_batches_do_not_matter(after):
    contexts, arms, rewards = rounds(60)
    whole = LinearRewards(2, 3, drop_rate=0.2, anneal_after=after, seed=0)
    parts = LinearRewards(2, 3, drop_rate=0.2, anneal_after=after, seed=0)
    whole.partial_fit(contexts, arms, rewards)
    for i in range(60):
        parts.partial_fit(contexts[i : i + 1], arms[i : i + 1], rewards[i : i + 1])
        parts.mean(contexts[:1])  # what was worked out meanwhile must not stay
    np.testing.assert_allclose(parts.sample(contexts, 3), whole.sample(contexts, 3))


def test_sample_is_the_functions_row_by_row():
    contexts, arms, rewards = rounds(30)
    model = LinearRewards(2, 3, seed=7).partial_fit(contexts, arms, rewards)
    expected = [model.function(5 + i)(contexts)[i] for i in range(len(contexts))]
    np.testing.assert_allclose(model.sample(contexts, 5), expected)
    shared = SharedLinearRewards(lambda c: c[:, None] * np.ones((3, 1)), 3, 2, seed=1)
    shared.partial_fit(contexts, arms, rewards)
    expected = [shared.function(5 + i)(contexts)[i] for i in range(len(contexts))]
    np.testing.assert_allclose(shared.sample(contexts, 5), expected)


def test_draws_have_the_mean():
    contexts, arms, rewards = rounds(40)
    model = LinearRewards(2, 3, drop_rate=0.3, seed=3).partial_fit(
        contexts, arms, rewards
    )
    same = np.repeat(contexts[:1], 4000, 0)
    draws = torch.from_numpy(model.sample(same, 0))
    assert_mean_is(draws, torch.from_numpy(model.mean(contexts[:1])[0]))


def test_sharing_by_one_hot_arms_is_a_model_per_arm():
    def features(contexts):
        rows = np.concatenate([contexts, np.ones((len(contexts), 1))], 1)
        return np.einsum("ij,kl->ikjl", rows, np.eye(3)).reshape(len(rows), 3, -1)

    contexts, arms, rewards = rounds(50)
    shared = SharedLinearRewards(features, 3, 9, seed=0)
    apart = LinearRewards(2, 3, seed=0)
    for model in (shared, apart):
        model.partial_fit(contexts, arms, rewards)
    np.testing.assert_allclose(shared.mean(contexts), apart.mean(contexts))


def test_where_the_posterior_concentrates():
    """It does so as 1/√n, but with a fixed rate at shrunk weights.

    In the limit (1 - f) mu = [S + f/(1 - f) diag S]^-1 S w, with the second moments S
    of the features; with a falling rate it is w.
    """
    second = np.array([[1.0, 0.8], [0.8, 1.0]])
    weights, rate, n = np.array([1.0, -1.0]), 0.3, 100_000
    contexts = np.random.default_rng(0).multivariate_normal(np.zeros(2), second, n)
    rewards = contexts @ weights + np.random.default_rng(1).normal(size=n)
    arms = np.zeros(n, dtype=int)
    penalty = rate / (1 - rate) * np.eye(2)
    limit = np.linalg.solve(second + penalty, second @ weights)
    assert np.abs(limit - weights).max() > 0.5
    spreads = {}
    for after, expected in ((None, limit), (10, weights)):
        model = LinearRewards(2, 1, drop_rate=rate, anneal_after=after, seed=0)
        for rows in (slice(0, 1000), slice(1000, n)):
            model.partial_fit(contexts[rows], arms[rows], rewards[rows])
            covariance = model.posterior(0).effective_covariance()[:2, :2]
            spreads[after, rows.start] = np.sqrt(np.trace(covariance))
        found = model.posterior(0).effective_mean[:2]
        np.testing.assert_allclose(found, expected, atol=0.02)
    # a hundred times the rows, a tenth of the spread
    assert spreads[None, 0] / spreads[None, 1000] == pytest.approx(10, rel=0.1)
    # the falling rate also lets go of the penalty, so its spread falls more slowly
    assert 5 < spreads[10, 0] / spreads[10, 1000] < 12


def test_bad_input():
    model = LinearRewards(2, 3, seed=0)
    contexts, arms, rewards = rounds(4)
    with pytest.raises(ShapeError, match=r"shape \(rows, 2\). Got \(2,\)"):
        model.partial_fit(contexts[0], arms, rewards)
    with pytest.raises(ShapeError, match=r"one value per context, 4"):
        model.partial_fit(contexts, arms[:3], rewards)
    with pytest.raises(ParameterError, match="whole numbers from 0 to 2"):
        model.partial_fit(contexts, arms + 3, rewards)
    with pytest.raises(ParameterError, match="whole numbers from 0 to 2"):
        model.partial_fit(contexts, arms * 1.0, rewards)
    with pytest.raises(ParameterError, match="rewards must be finite"):
        model.partial_fit(contexts, arms, rewards * np.nan)
    with pytest.raises(ParameterError, match="contexts must be finite"):
        model.mean(contexts * np.inf)
    with pytest.raises(ParameterError, match="rate must lie in"):
        LinearRewards(2, 3, drop_rate=1.0)
    with pytest.raises(
        ParameterError, match="prior_precision must be finite and above"
    ):
        LinearRewards(2, 3, prior_precision=0.0)
    with pytest.raises(ParameterError, match="shape of variance_prior"):
        LinearRewards(2, 3, variance_prior=(0.0, 1.0))
    with pytest.raises(ParameterError, match="a pair"):
        LinearRewards(2, 3, variance_prior=1.0)
    with pytest.raises(ShapeError, match=r"\(rows, arms, inputs\), here \(4, 3, 5\)"):
        SharedLinearRewards(lambda c: c, 3, 5).mean(contexts)
