"""Networks of probabilistic backpropagation: their start and their predictions."""

import numpy as np
import pytest
import torch

from caveat.training.pbp import PBPNetworks, initial
from caveat.training.pbp.layers import Values, Weights
from caveat.training.pbp.networks import propagated
from tests.statistics import assert_mean_is


def generators(count):
    return [np.random.default_rng(k) for k in range(count)]


def test_the_start_is_that_of_the_paper():
    found = initial(8, (50,), generators(30))
    assert [w.mean.shape for w in found.layers] == [(30, 50, 9), (30, 1, 51)]
    for weights, inputs in zip(found.layers, (9, 51), strict=True):
        assert (weights.variance == 6.0 / 5.0).all()
        squares = np.square(weights.mean.ravel()) * inputs
        assert_mean_is(torch.from_numpy(squares), 1.0)
    assert (found.noise.mean_variance == 1.2).all() and len(found) == 30


def test_variances_of_nearly_nothing_give_the_network_of_the_means():
    made = initial(3, (6, 4), generators(2))
    layers = tuple(Weights(w.mean, np.full(w.mean.shape, 1e-24)) for w in made.layers)
    sure = PBPNetworks(layers, made.noise, made.prior, made.factors)
    x = np.random.default_rng(9).normal(size=(2, 7, 3))
    mean, variance = sure.predict(x)
    np.testing.assert_allclose(mean, sure.at_means(x), atol=1e-9)
    assert variance.max() < 1e-20


def test_moments_of_one_hidden_layer_are_those_of_drawn_networks():
    """Exact for a hidden layer and fixed x: its units are independent."""
    made = initial(3, (5,), generators(1))
    x = np.random.default_rng(3).normal(size=(1, 1, 3))
    mean, variance = (a.item() for a in made.predict(x))
    generator, n = np.random.default_rng(0), 40_000
    first, last = (
        w.mean + np.sqrt(w.variance) * generator.normal(size=(n, *w.mean.shape[1:]))
        for w in made.layers
    )
    one = np.ones((n, 1))
    hidden = np.maximum(first @ np.append(x, 1.0) / 2.0, 0.0)
    drawn = (last[:, 0] * np.concatenate([hidden, one], 1)).sum(1) / np.sqrt(6.0)
    assert_mean_is(torch.from_numpy(drawn), mean)
    assert_mean_is(torch.from_numpy(np.square(drawn - mean)), variance)


def test_a_trace_holds_what_entered_each_layer():
    made = initial(3, (5, 4), generators(2))
    trace = propagated(made.layers, Values(np.zeros((2, 1, 3))).with_bias())
    assert [v.mean.shape[-1] for v in trace.inputs] == [4, 6, 5]
    assert all((v.mean[..., -1] == 1.0).all() for v in trace.inputs)


def test_one_of_several_predicts_as_it_did():
    made = initial(3, (5,), generators(3))
    x = np.random.default_rng(1).normal(size=(3, 4, 3))
    mean, variance = made.only(2).predict(x[2:])
    np.testing.assert_allclose(mean[0], made.predict(x)[0][2], rtol=1e-12)
    np.testing.assert_allclose(variance[0], made.predict(x)[1][2], rtol=1e-12)
    assert made.only(2).factors.precision.shape == (1, 5 * 4 + 6)
    assert made.only(2).at_means(x[2:]) == pytest.approx(made.at_means(x)[2:])
