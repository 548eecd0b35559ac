"""Low-rank-plus-diagonal covariance: moments, KL, and relations that are learned."""

import pytest
import torch
from torch import nn
from torch.distributions import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    kl_divergence,
)

from caveat import noise
from caveat.errors import InputTypeError, ParameterError
from tests.noise.families import assert_draws_have, linear


def wrapped_layer(layer):
    with torch.random.fork_rng():
        torch.manual_seed(8)
        wrapped = noise.LowRank(rank=2, initial_std=0.5).wrap(layer)
        with torch.no_grad():
            wrapped.log_std.add_(torch.randn(8))
    return wrapped


def test_moments():
    wrapped = wrapped_layer(linear())
    covariance = torch.diag(torch.exp(2 * wrapped.log_std))
    covariance = covariance + wrapped.factors.T @ wrapped.factors
    family = noise.LowRank(rank=2, initial_std=0.5)
    assert_draws_have(family, covariance.detach(), make=wrapped_layer)


def test_kl_is_that_of_torch():
    layer = linear()
    wrapped = wrapped_layer(layer)
    mean = torch.cat([layer.weight.flatten(), layer.bias])
    law = LowRankMultivariateNormal(
        mean, wrapped.factors.T, torch.exp(2 * wrapped.log_std)
    )
    prior = MultivariateNormal(torch.zeros(8).double(), torch.eye(8).double() / 0.36)
    torch.testing.assert_close(wrapped.kl(0.6), kl_divergence(law, prior))


def test_the_start_is_fixed_and_leaves_torchs_generator_alone():
    layers = [linear(), linear()]
    state = torch.get_rng_state()
    one, other = (noise.LowRank(3).wrap(layer) for layer in layers)
    assert torch.equal(one.factors, other.factors)
    assert torch.equal(torch.get_rng_state(), state)


def test_variance_at_the_start():
    wrapped = noise.LowRank(rank=50, initial_std=0.3).wrap(nn.Linear(40, 40))
    variance = torch.exp(2 * wrapped.log_std) + wrapped.factors.square().sum(0)
    assert variance.mean().item() == pytest.approx(0.09, rel=0.02)


def test_it_learns_that_only_a_difference_is_known():
    """Data fix w1 + w2; the posterior lets the weights move against each other."""
    wrapped = noise.LowRank(rank=1, initial_std=0.1).wrap(nn.Linear(2, 1, bias=False))
    x, y = torch.ones(50, 2), torch.ones(50, 1)
    optimiser = torch.optim.Adam(wrapped.parameters(), lr=0.02)
    for _ in range(600):
        optimiser.zero_grad()
        loss = 0.5 * 20 * (wrapped(x) - y).square().sum() + wrapped.kl(1.0)
        loss.backward()
        optimiser.step()
    first, second = wrapped.factors.detach()[0].tolist()
    assert first * second < 0
    covariance = torch.diag(torch.exp(2 * wrapped.log_std)) + (
        wrapped.factors.T @ wrapped.factors
    )
    correlation = covariance[0, 1] / covariance.diagonal().prod().sqrt()
    assert correlation < -0.9


def test_bad_arguments():
    with pytest.raises(ParameterError, match="rank"):
        noise.LowRank(rank=0)
    with pytest.raises(InputTypeError, match="rank"):
        noise.LowRank(rank=1.5)
    with pytest.raises(ParameterError, match="initial_std"):
        noise.LowRank(initial_std=0.0)
