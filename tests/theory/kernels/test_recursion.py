"""The deep recursion: reference values, wide random networks, masks, fixed points."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from caveat.errors import ParameterError
from caveat.theory.kernels import (
    Identity,
    Jump,
    Layer,
    LeakyRelu,
    Masks,
    NetworkKernel,
    as_nonlinearity,
    network_covariance,
    network_gram,
    network_variance,
)
from tests.statistics import assert_mean_is
from tests.theory.kernels.cases import X, Y

# theory.md, section 13: q_xx, q_yy, q_xy after 1, 2, 3 hidden layers
DEEP = {
    ("relu", 2.0, 0.0, 1.0): [
        (1.25, 0.73, 0.35573272852),
        (1.25, 0.73, 0.5032698523),
        (1.25, 0.73, 0.59896863525),
    ],
    ("relu", 2.0, 0.0, 0.8): [
        (1.5625, 0.9125, 0.35573272852),
        (1.953125, 1.140625, 0.5749430786),
        (2.44140625, 1.42578125, 0.79827779758),
    ],
    ("erf", 1.5, 0.1, 1.0): [
        (0.80730614177, 0.67252707892, 0.22617985804),
        (0.73560475458, 0.68332654824, 0.27543693131),
        (0.70894772225, 0.68787093664, 0.31944755845),
    ],
    ("erf", 1.5, 0.1, 0.8): [
        (0.98413267721, 0.81565884866, 0.22617985804),
        (0.96535310156, 0.89819540436, 0.25525019814),
        (0.95848540667, 0.93272355205, 0.27120302849),
    ],
    ("tanh", 1.5, 0.1, 1.0): [
        (0.70149079416, 0.57548513537, 0.20764803001),
        (0.59633582968, 0.54537356367, 0.24718979774),
        (0.55438405384, 0.53190612465, 0.28537997895),
    ],
}


def stack(names, *, weight=1.5, bias=0.1, masks=None):
    """Layers with fan-in scaling for two inputs."""
    kernel = NetworkKernel(
        names,
        weight_variance=weight,
        bias_variance=bias,
        masks=masks or Masks(),
        fan_in=True,
    )
    return kernel.layers(2)


@pytest.mark.parametrize("net", DEEP, ids=str)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_reference_values(net, depth):
    name, weight, bias, keep = net
    layers = stack(
        [name] * depth + ["identity"],
        weight=weight,
        bias=bias,
        masks=Masks(keep, shared=False),
    )
    xx, yy, xy = DEEP[net][depth - 1]
    assert network_variance(X, layers)[0] == pytest.approx(xx, abs=1e-11)
    assert network_variance(Y, layers)[0] == pytest.approx(yy, abs=1e-11)
    assert network_covariance(X, Y, layers)[0, 0] == pytest.approx(xy, abs=1e-11)


# Masks


@pytest.mark.parametrize("inverted", [True, False])
@pytest.mark.parametrize("shared", [True, False])
def test_one_masked_layer_restated(shared, inverted):
    """q_xx -> s_b² + s_w² s² p V(xx), q_xy with p² for masks of their own (E80)."""
    keep, weight, bias = 0.7, 1.3, 0.2
    scale = 1 / keep if inverted else 1.0
    masks = Masks(keep, shared=shared, inverted=inverted)
    layers = stack(["relu", "identity"], weight=weight, bias=bias, masks=masks)
    inner = stack(["relu"], weight=weight, bias=bias)
    own = bias + weight * scale**2 * keep * network_variance(X, inner)
    both = keep if shared else keep**2
    cross = bias + weight * scale**2 * both * network_covariance(X, Y, inner)
    assert_allclose(network_variance(X, layers), own, rtol=1e-14)
    assert_allclose(network_covariance(X, Y, layers), cross, rtol=1e-14)
    pair = np.vstack([X, Y])
    assert_allclose(np.diag(network_gram(pair, layers)), network_variance(pair, layers))
    assert network_gram(pair, layers)[0, 1] == pytest.approx(cross[0, 0], rel=1e-14)


def test_shared_inverted_masks_raise_everything_and_own_masks_the_diagonal():
    plain, shared, own = (
        stack(["relu", "identity"], bias=0.0, masks=masks)
        for masks in (Masks(), Masks(0.5), Masks(0.5, shared=False))
    )
    pair = np.vstack([X, Y])
    before = network_gram(pair, plain)
    assert_allclose(network_gram(pair, shared), 2 * before, rtol=1e-14)
    assert_allclose(network_gram(pair, own), before + np.diag(np.diag(before)))


def test_two_passes_of_one_input_decorrelate_with_depth():
    """With masks of their own a correlation of 1 is no fixed point."""
    correlations = []
    for depth in (1, 2, 4, 8):
        layers = stack(["relu"] * depth + ["identity"], masks=Masks(0.8, shared=False))
        between = network_covariance(X, X, layers)[0, 0]
        correlations.append(between / network_variance(X, layers)[0])
    assert all(a > b for a, b in pairwise(correlations))
    assert correlations[0] < 0.9


def test_monte_carlo_dropout_before_training():
    """Var_z f -> ((1-p)/p) s_w² V(xx) for one hidden layer, inverted."""
    keep, weight = 0.7, 1.5
    own, shared = (
        stack(["erf", "identity"], masks=Masks(keep, shared=shared))
        for shared in (False, True)
    )
    spread = network_variance(X, own)[0] - network_covariance(X, X, own)[0, 0]
    hidden = network_variance(X, stack(["erf"]))[0]
    assert spread == pytest.approx((1 - keep) / keep * weight * hidden, rel=1e-13)
    none = network_variance(X, shared)[0] - network_covariance(X, X, shared)[0, 0]
    assert none == pytest.approx(0.0, abs=1e-14)


# Depth


def test_he_scaling_keeps_variances_and_joins_points():
    correlations = []
    for depth in (1, 5, 50):
        layers = stack(["relu"] * depth + ["identity"], weight=2.0, bias=0.0)
        variance = network_variance(np.vstack([X, Y]), layers)
        assert_allclose(variance, [1.25, 0.73 * 1.0], rtol=1e-12)
        covariance = network_covariance(X, Y, layers)[0, 0]
        correlations.append(covariance / math.sqrt(variance.prod()))
    assert correlations == sorted(correlations)
    assert correlations[-1] > 0.98


@pytest.mark.parametrize("t", [1e-4, 1e-7, 1e-9])
def test_angles_stay_accurate_through_layers(t):
    """A step behind ReLUs feels the angle itself; its series is exact here."""
    angle = math.atan(t)
    for _ in range(3):
        cube = (angle**3 / 3 - angle**5 / 30) / math.pi
        missing = angle**2 / 2 - angle**4 / 24 - cube
        angle = 2 * math.asin(math.sqrt(missing / 2))
    layers = [Layer(LeakyRelu(), 2.0, 0.0)] * 3 + [Layer(Jump(), 1.0, 0.0)]
    found = network_covariance([[1.0, 0.0]], [[3.0, 3.0 * t]], layers)[0, 0]
    assert found == pytest.approx(0.5 - angle / (2 * math.pi), abs=3e-16)


def test_parallel_points_stay_parallel():
    """One input and no bias: every ReLU unit is proportional to x."""
    layers = [Layer(LeakyRelu(), 1.7, 0.0)] * 4 + [Layer(Jump(), 1.0, 0.0)]
    found = network_covariance([[0.1], [3.0]], [[0.7], [1e6]], layers)
    assert_allclose(found, 0.5, atol=1e-15)


def test_layers_may_differ():
    first = Layer(LeakyRelu(), 1.3, 0.2)
    second = Layer(Identity(), 0.6, 0.7)
    inner = network_covariance(X, Y, [first])
    found = network_covariance(X, Y, [first, second])
    assert_allclose(found, 0.7 + 0.6 * inner, rtol=1e-14)


# Wide random networks


@pytest.mark.parametrize("name", ["relu", "tanh", "cos", "step"])
@pytest.mark.parametrize("shared", [True, False])
def test_wide_networks_have_these_covariances(name, shared):
    """Means over the units of random nets, of which there are fewer than units."""
    keep, weight, bias, width, n_nets = 0.8, 1.5, 0.3, 400, 80
    sigma, rng = as_nonlinearity(name), np.random.default_rng(7)
    points = np.vstack([X, Y])
    masks = Masks(keep, shared=shared)
    layers = stack([name, name], weight=weight, bias=bias, masks=masks)
    products = []
    for _ in range(n_nets):
        hidden = points
        for fan_in in (2, width):
            if fan_in == width:
                mask = rng.random((1 if shared else 2, width)) < keep
                hidden = hidden * mask / keep
            weights = rng.standard_normal((fan_in, width)) * math.sqrt(weight / fan_in)
            biases = rng.standard_normal(width) * math.sqrt(bias)
            hidden = sigma(hidden @ weights + biases)
        products.append(hidden @ hidden.T / width)
    expected = torch.tensor(network_gram(points, layers))
    assert_mean_is(torch.tensor(np.array(products)), expected)


# Bad input


def test_bad_layers():
    with pytest.raises(ParameterError, match="at least one layer"):
        network_covariance(X, Y, [])
    with pytest.raises(ParameterError, match="weight_variance must be finite"):
        Layer(Identity(), 0.0, 0.0)
    with pytest.raises(ParameterError, match="bias_variance must be finite"):
        Layer(Identity(), 1.0, -1.0)
