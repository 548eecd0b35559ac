"""Factorised Gaussian weights: moments, KL, and the posterior of a linear model."""

import pytest
import torch
from torch import nn

from caveat import noise, theory
from caveat.errors import ParameterError
from tests.noise.families import assert_draws_have, double, linear


def widened(layer):
    wrapped = noise.FactorisedGaussian(0.3).wrap(layer)
    with torch.no_grad():
        wrapped.log_std.add_(torch.linspace(-1, 1, 6).view(2, 3).double())
    return wrapped


def test_moments():
    wrapped = widened(linear())
    sds = torch.cat([wrapped.log_std.flatten(), wrapped.log_sd_bias]).exp()
    covariance = torch.diag(sds.square()).detach()
    assert_draws_have(noise.FactorisedGaussian(0.3), covariance, make=widened)


def test_it_has_twice_the_parameters():
    layer = linear()
    wrapped = noise.FactorisedGaussian(0.3).wrap(layer)
    counts = [sum(p.numel() for p in m.parameters()) for m in (layer, wrapped)]
    assert counts[1] == 2 * counts[0]


def test_kl_is_that_of_theory():
    layer = linear()
    found = noise.FactorisedGaussian(0.3).wrap(layer).kl(0.6)
    both = torch.cat([layer.weight.flatten(), layer.bias])
    expected = theory.kl_bias(both, component_std=0.3, lengthscale=0.6)
    torch.testing.assert_close(found, expected)


def test_it_learns_the_posterior_of_a_linear_model():
    """Orthogonal inputs: the posterior is factorised, with precision l² + tau x'x."""
    x = double([[1.0, 0.0], [2.0, 0.0], [0.0, 0.5], [0.0, 0.1]])
    y = double([[1.0], [2.5], [-1.0], [0.3]])
    tau, length = 4.0, 1.5
    precision = length**2 + tau * x.square().sum(0)
    mean = tau * (x.T @ y).squeeze(1) / precision
    layer = nn.Linear(2, 1, bias=False).double()
    wrapped = noise.FactorisedGaussian(0.2).wrap(layer)
    optimiser = torch.optim.Adam(wrapped.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.995)
    for _ in range(1500):
        optimiser.zero_grad()
        loss = tau / 2 * (wrapped(x) - y).square().sum() + wrapped.kl(length)
        loss.backward()
        optimiser.step()
        schedule.step()
    torch.testing.assert_close(layer.weight.detach()[0], mean, rtol=0, atol=0.02)
    sds = wrapped.log_std.detach().exp()[0]
    torch.testing.assert_close(sds, precision.rsqrt(), rtol=0.1, atol=0)


def test_without_bias_there_is_no_width_of_it():
    wrapped = noise.FactorisedGaussian(0.3).wrap(nn.Linear(2, 1, bias=False))
    assert [name for name, _ in wrapped.named_parameters()] == [
        "log_std",
        "layer.weight",
    ]


def test_bad_arguments():
    with pytest.raises(ParameterError, match="initial_std"):
        noise.FactorisedGaussian(-0.1)
