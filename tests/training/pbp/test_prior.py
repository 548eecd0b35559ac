"""The prior's factors: taken out and put in again, and the gamma they share."""

import numpy as np
import pytest

from caveat.training.pbp import initial, learn
from caveat.training.pbp.layers import Weights
from caveat.training.pbp.networks import GAMMA, PBPNetworks
from caveat.training.pbp.prior import refined


def start(count=2, hidden=(3,)):
    return initial(2, hidden, [np.random.default_rng(k) for k in range(count)])


def with_weights(networks, mean, variance):
    layers = tuple(
        Weights(np.full(w.mean.shape, mean), np.full(w.mean.shape, variance))
        for w in networks.layers
    )
    return PBPNetworks(layers, networks.noise, networks.prior, networks.factors)


def authors_round(mean, variance, hat, a, b):
    """A round for one network as the authors write it, weight by weight."""
    for i in range(len(mean)):
        own_precision = 1 / variance[i] - hat[i][0]
        v, m = 1 / own_precision, mean[i] / variance[i] / own_precision
        a0, b0 = a - hat[i][1], b + hat[i][2]
        if not (0 < v < 1e6 and b0 > 0 and a0 > 1):
            continue
        totals = [v + b0 / (a0 - 1 + k) for k in range(3)]
        z, z1, z2 = (np.exp(-0.5 * m**2 / t) / np.sqrt(t) for t in totals)
        d_m = -m / totals[0]
        d_v = 0.5 * (m**2 / totals[0] - 1) / totals[0]
        mean[i], variance[i] = m + v * d_m, v - v**2 * (d_m**2 - 2 * d_v)
        a = 1 / (z2 * z / z1**2 * (a0 + 1) / a0 - 1)
        b = 1 / (z2 / z1 * (a0 + 1) / b0 - z1 / z * a0 / b0)
        hat[i] = (1 / variance[i] - own_precision, a - a0, b0 - b)
    return a, b


def test_rounds_are_those_of_the_authors():
    generator = np.random.default_rng(4)
    networks, expected = start(), []
    layers = tuple(
        Weights(
            generator.normal(size=w.mean.shape), generator.gamma(1.0, size=w.mean.shape)
        )
        for w in networks.layers
    )
    networks = PBPNetworks(layers, networks.noise, networks.prior, networks.factors)
    for k in range(2):
        own = [
            np.concatenate([a.ravel() for a in part])
            for part in ([w.mean[k] for w in layers], [w.variance[k] for w in layers])
        ]
        hat = [(5.0 / 6.0, 0.0, 0.0)] * len(own[0])
        a = b = GAMMA
        for _ in range(2):
            a, b = authors_round(*own, hat, a, b)
        expected.append((*own, a, b))
    found = refined(refined(networks))
    for k, (mean, variance, a, b) in enumerate(expected):
        flat = np.concatenate([w.mean[k].ravel() for w in found.layers])
        np.testing.assert_allclose(flat, mean, rtol=1e-9)
        flat = np.concatenate([w.variance[k].ravel() for w in found.layers])
        np.testing.assert_allclose(flat, variance, rtol=1e-9)
        assert found.prior.shape[k] == pytest.approx(a, rel=1e-9)
        assert found.prior.rate[k] == pytest.approx(b, rel=1e-9)


def test_large_weights_widen_the_prior_and_small_ones_narrow_it():
    networks = start()
    large = refined(with_weights(networks, 3.0, 1e-4))
    small = refined(with_weights(networks, 0.1, 1e-4))
    assert (large.prior.mean_variance > 2.0).all()
    assert (small.prior.mean_variance < 0.8).all()


def test_a_weight_that_the_data_do_not_speak_of_is_left():
    networks = start()
    untouched = refined(networks)  # their variance is that of the prior's factor
    for before, after in zip(networks.layers, untouched.layers, strict=True):
        np.testing.assert_allclose(before.mean, after.mean)
        np.testing.assert_allclose(before.variance, after.variance)
    np.testing.assert_array_equal(untouched.prior, networks.prior)


def test_prior_and_noise_follow_the_data():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(1, 200, 2))
    y = 5 * x[..., 0] + 0.01 * generator.normal(size=(1, 200))
    found = learn(x, y, hidden=(), n_epochs=3, seeds=[0])
    assert found.prior.mean_variance[0] > GAMMA / (GAMMA - 1.0)
    assert found.noise.mean_variance[0] < 0.5
