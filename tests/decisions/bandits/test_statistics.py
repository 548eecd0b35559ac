"""Sums learned row by row give the posterior of all rows at once."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from caveat.decisions.bandits.statistics import LinearStatistics
from caveat.maxent.linear import (
    Design,
    Features,
    VariancePrior,
    fit_posterior,
    make_noise,
)
from tests.statistics import assert_mean_is, assert_variance_is

REFERENCE_X = np.array([[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]])
REFERENCE_Y = np.array([1.2, 0.1, 0.4, 0.9])


def learned(x, y, sizes):
    """Statistics of two models; the second has seen the rows in parts."""
    sums = LinearStatistics(2, x.shape[1])
    sums.add(np.zeros(3, dtype=int), np.ones((3, x.shape[1])), np.ones(3))
    for rows in np.split(np.arange(len(y)), np.cumsum(sizes)):
        sums.add(np.ones(len(rows), dtype=int), x[rows], y[rows])
    return sums


@given(st.integers(0, 1000), st.lists(st.integers(0, 7), max_size=5))
@settings(max_examples=30, deadline=None)
def test_parts_give_the_posterior_of_the_whole(seed, sizes):
    """E147 against ``maxent.linear.fit_posterior``."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(40, 4)), rng.normal(size=40)
    rates = np.array([0.3, 0.0, 0.6, 0.1])
    prior = VariancePrior(2.0, 0.5)
    found = learned(x, y, sizes).posterior(1, rates, 0.7, prior)
    whole = fit_posterior(
        Design(Features(x), make_noise(rates, 4), 0.7), y, prior=prior
    )
    np.testing.assert_allclose(found.mean, whole.mean, rtol=1e-9, atol=1e-11)
    assert found.shape == pytest.approx(whole.shape)
    assert found.rate == pytest.approx(whole.rate)
    keep = 1 - rates
    expected = keep[:, None] * whole.covariance() * keep
    np.testing.assert_allclose(found.effective_covariance(), expected, rtol=1e-8)
    np.testing.assert_allclose(found.effective_mean, whole.effective_weights)


def test_reference_values():
    """Those of the linear model with f = 0.4 and lambda0 = 0.5."""
    sums = LinearStatistics(1, 2)
    for x, y in zip(REFERENCE_X, REFERENCE_Y, strict=True):
        sums.add(np.zeros(1, dtype=int), x[None], y[None])
    tiny = VariancePrior(1e-300, 1e-300)  # as good as Jeffreys'
    found = sums.posterior(0, np.full(2, 0.4), 0.5, tiny)
    np.testing.assert_allclose(found.mean, [0.677269288047, 0.308594862033])
    assert (found.shape, found.rate) == (2.0, pytest.approx(0.74981996554604))
    expected = [[1.634, -0.1836], [-0.1836, 2.6]]
    np.testing.assert_allclose(found.lower @ found.lower.T, expected)


def test_draws_have_the_moments_of_the_posterior():
    """E148."""
    sums = LinearStatistics(1, 2)
    sums.add(np.zeros(4, dtype=int), REFERENCE_X, REFERENCE_Y)
    posterior = sums.posterior(0, np.full(2, 0.4), 0.5, VariancePrior(3.0, 1.0))
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((20_000, 2))
    gamma = rng.standard_gamma(posterior.shape, 20_000)
    draws = posterior.effective_draws(normal, gamma)
    covariance = posterior.effective_covariance()
    assert_mean_is(torch.from_numpy(draws), torch.from_numpy(posterior.effective_mean))
    for direction in ([1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -2.0]):
        along = torch.from_numpy(draws @ direction)
        assert_variance_is(along, float(direction @ covariance @ direction))


def test_untried_models_have_their_prior():
    posterior = LinearStatistics(1, 3).posterior(
        0, np.zeros(3), 4.0, VariancePrior(2.0, 6.0)
    )
    np.testing.assert_allclose(posterior.effective_mean, 0.0)
    np.testing.assert_allclose(posterior.effective_covariance(), np.eye(3) * 6.0 / 4.0)
