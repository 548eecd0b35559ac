"""Learning: slopes against autograd, stacks against single networks, known cases."""

import math

import numpy as np
import pytest
import torch

from caveat.errors import ShapeError
from caveat.training.pbp import initial, learn
from caveat.training.pbp.gamma import Gamma, normalisers
from caveat.training.pbp.layers import Values, Weights
from caveat.training.pbp.learning import absorbed, log_z_slopes
from caveat.training.pbp.networks import PBPNetworks, propagated


def some_networks(hidden, count=3, n_inputs=4, spread=1.0):
    """Networks away from their start, with weights of all sizes."""
    generator = np.random.default_rng(5)
    made = initial(n_inputs, hidden, [np.random.default_rng(k) for k in range(count)])
    layers = tuple(
        Weights(
            spread * generator.normal(size=w.mean.shape),
            generator.gamma(0.5, size=w.mean.shape) + 1e-3,
        )
        for w in made.layers
    )
    noise = Gamma(6.0 + generator.random(count), 2.0 + generator.random(count))
    return PBPNetworks(layers, noise, made.prior, made.factors)


def some_rows(count=3, n_rows=30, n_inputs=4):
    generator = np.random.default_rng(1)
    x = generator.normal(size=(count, n_rows, n_inputs))
    return x, np.abs(x[..., 0]) + 0.1 * generator.normal(size=(count, n_rows))


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


@pytest.mark.parametrize("hidden", [(), (5,), (4, 3)])
def test_a_network_does_not_depend_on_its_neighbours(hidden):
    x, y = some_rows()
    settings = {"hidden": hidden, "n_epochs": 3}
    together = learn(x, y, seeds=[7, 8, 9], **settings)
    for k in range(3):
        alone = learn(x[k : k + 1], y[k : k + 1], seeds=[7 + k], **settings)
        own = together.only(k)
        for a, b in zip(own.layers, alone.layers, strict=True):
            np.testing.assert_allclose(a.mean, b.mean, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(a.variance, b.variance, rtol=1e-9)
        np.testing.assert_allclose(own.noise, alone.noise, rtol=1e-9)
        np.testing.assert_allclose(own.prior, alone.prior, rtol=1e-9)


def test_variances_stay_positive_under_extreme_rows():
    x, y = some_rows()
    x[0, 0], y[0, 1], x[1, 5], y[2, 3] = 1e6, 1e8, -1e12, -1e15
    found = learn(x, y, hidden=(6,), n_epochs=3, seeds=[0, 1, 2])
    assert all((w.variance > 0).all() for w in found.layers)
    assert (found.noise.mean_variance > 0).all()


def test_a_row_makes_the_noise_and_its_own_weights_surer():
    networks = some_networks((5,), spread=0.3)
    x, _ = some_rows(n_rows=1)
    row = np.concatenate([x[:, 0], np.ones((3, 1))], 1)
    mean, variance = (a[:, 0] for a in networks.predict(x))
    after = absorbed(networks, row, mean)  # an observation just as expected
    assert (after.predict(x)[1][:, 0] < variance).all()
    assert (after.noise.mean_variance < networks.noise.mean_variance).all()


def test_a_line_is_found_with_its_noise():
    generator = np.random.default_rng(2)
    x = generator.normal(size=(1, 400, 2))
    y = 0.8 * x[..., 0] - 0.3 * x[..., 1] + 0.1 + 0.2 * generator.normal(size=(1, 400))
    found = learn(x, y, hidden=(), n_epochs=5, seeds=[0])
    # Weights are divided by sqrt(3); five passes count each row five times
    expected = np.sqrt(3) * np.array([0.8, -0.3, 0.1])
    assert np.abs(found.layers[0].mean[0, 0] - expected).max() < 0.08
    exact = (6.0 + 2000 * 0.04 / 2) / (6.0 + 2000 / 2 - 1.0)
    assert found.noise.mean_variance[0] == pytest.approx(exact, rel=0.2)
    assert (found.layers[0].variance < 1e-2).all()


def test_shapes_that_do_not_fit_are_named():
    x, y = some_rows()
    with pytest.raises(ShapeError, match="a seed per network"):
        learn(x, y, seeds=[0])
    with pytest.raises(ShapeError, match="y \\(networks, rows\\)"):
        learn(x, y[:, :-1], seeds=[0, 1, 2])
