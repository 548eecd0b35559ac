"""One row absorbed: slopes against autograd, and what it makes surer."""

import math

import numpy as np
import pytest
import torch

from caveat.training.pbp.absorbing import absorbed, log_z_slopes
from caveat.training.pbp.gamma import normalisers
from caveat.training.pbp.layers import Values
from caveat.training.pbp.networks import propagated
from tests.training.pbp.examples import some_networks, some_rows


def log_z_by_torch(layers, noise, x, y):
    """log Z by means and variances, in the plain formulas of the paper."""
    z, u = x, torch.zeros_like(x)
    for place, (m, v) in enumerate(layers):
        mean = (m @ z.unsqueeze(-1)).squeeze(-1) / math.sqrt(z.shape[-1])
        variance = (v @ (z.square() + u).unsqueeze(-1)).squeeze(-1)
        variance = variance + (m.square() @ u.unsqueeze(-1)).squeeze(-1)
        variance = variance / z.shape[-1]
        if place < len(layers) - 1:
            std = variance.sqrt()
            cdf = torch.special.ndtr(mean / std)
            density = (-(mean / std).square() / 2).exp() / math.sqrt(2 * math.pi)
            z = mean * cdf + std * density
            second = (mean.square() + variance) * cdf + mean * std * density
            u = second - z.square()
            z = torch.cat([z, torch.ones_like(z[:, :1])], 1)
            u = torch.cat([u, torch.zeros_like(u[:, :1])], 1)
    total = variance[:, 0] + noise
    return -0.5 * (total.log() + (y - mean[:, 0]).square() / total)


@pytest.mark.parametrize("hidden", [(), (5,), (6, 3), (4, 4, 2)])
def test_slopes_of_log_z_are_those_of_autograd(hidden):
    networks = some_networks(hidden)
    x, y = some_rows(n_rows=1)
    row = np.concatenate([x[:, 0], np.ones((3, 1))], 1)
    trace = propagated(networks.layers, Values(row[:, None]))
    error = y[:, 0] - trace.mean[:, 0, 0]
    z = normalisers(error, trace.variance[:, 0, 0], networks.noise)
    found = log_z_slopes(networks.layers, trace, error, z.total)

    leaves = [
        [torch.tensor(a, requires_grad=True) for a in (w.mean, w.variance)]
        for w in networks.layers
    ]
    noise = torch.from_numpy(networks.noise.mean_variance)
    log_z = log_z_by_torch(
        leaves, noise, torch.from_numpy(row), torch.from_numpy(y[:, 0])
    )
    np.testing.assert_allclose(z.log_z, log_z.detach(), rtol=1e-12)
    log_z.sum().backward()
    for own, expected in zip(found, leaves, strict=True):
        for slope, leaf in zip(own, expected, strict=True):
            scale = leaf.grad.abs().max().item()
            np.testing.assert_allclose(slope, leaf.grad, rtol=1e-8, atol=1e-10 * scale)


def test_a_row_makes_the_noise_and_its_own_weights_surer():
    networks = some_networks((5,), spread=0.3)
    x, _ = some_rows(n_rows=1)
    row = np.concatenate([x[:, 0], np.ones((3, 1))], 1)
    mean, variance = (a[:, 0] for a in networks.predict(x))
    after = absorbed(networks, row, mean)  # an observation just as expected
    assert (after.predict(x)[1][:, 0] < variance).all()
    assert (after.noise.mean_variance < networks.noise.mean_variance).all()
