"""From a torch network to its kernel."""

import copy
import math

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from caveat.errors import (
    InputTypeError,
    ParameterError,
    ShapeError,
    UnsupportedModelError,
)
from caveat.theory import gp_of
from caveat.theory.kernels import LeakyRelu, Masks, NetworkKernel
from tests.statistics import assert_mean_is
from tests.theory.kernels.cases import X, Y

POINTS = np.vstack([X, Y])


def mlp(*hidden, n_inputs=2, width=20):
    layers, fan_in = [], n_inputs
    for module in hidden:
        layers += [nn.Linear(fan_in, width), module]
        fan_in = width
    return nn.Sequential(*layers, nn.Linear(fan_in, 1))


@pytest.mark.parametrize(
    ("module", "nonlinearity"),
    [
        (nn.ReLU(), "relu"),
        (nn.LeakyReLU(0.3), LeakyRelu(0.3)),
        (nn.Tanh(), "tanh"),
        (nn.Sigmoid(), "sigmoid"),
        (nn.GELU(), "gelu"),
        (nn.SiLU(), "silu"),
        (nn.Softplus(), "softplus"),
        (nn.Identity(), "identity"),
    ],
)
def test_activations(module, nonlinearity):
    expected = NetworkKernel([nonlinearity, nonlinearity, "identity"], fan_in=True)
    found = gp_of(mlp(module, module), weight_variance=1.0, bias_variance=1.0)
    assert_allclose(found(POINTS), expected(POINTS), rtol=1e-12)


@pytest.mark.parametrize("module", [nn.GELU("tanh"), nn.Softplus(beta=3.0), nn.Tanh()])
def test_functions_of_parametrised_activations(module):
    sigma = gp_of(mlp(module), lengthscale=1.0).nonlinearity[0]
    z = torch.linspace(-3, 3, 13, dtype=torch.float64)
    assert_allclose(sigma(z.numpy()), module(z), rtol=1e-7)


def test_lengthscale_is_the_prior_of_the_papers():
    """s_w² = s_b² = 1/l², inputs not divided by their number (E84)."""
    found = gp_of(mlp(nn.ReLU(), nn.ReLU()), lengthscale=0.5)
    expected = NetworkKernel(
        ["relu", "relu", "identity"], weight_variance=4.0, bias_variance=4.0
    )
    assert_allclose(found(POINTS), expected(POINTS))
    assert found.n_dims == 2


def test_widths_and_values_of_weights_do_not_matter():
    wide, narrow = mlp(nn.ReLU(), width=50), mlp(nn.ReLU(), width=3)
    assert gp_of(wide, lengthscale=1.0) == gp_of(narrow, lengthscale=1.0)


def test_dropout_feeds_the_next_layer():
    net = nn.Sequential(
        nn.Linear(2, 9),
        nn.Tanh(),
        nn.Dropout(0.2),
        nn.Sequential(nn.Linear(9, 9), nn.ReLU(), nn.Dropout(0.5), nn.Dropout(0.5)),
        nn.Linear(9, 1),
    )
    found = gp_of(net, lengthscale=1.0, shared=False)
    assert found.masks == Masks((0.8, 0.25), shared=False)


def test_layers_without_bias():
    def net(*has_bias):
        first = nn.Linear(2, 9, bias=has_bias[0])
        return nn.Sequential(first, nn.ReLU(), nn.Linear(9, 1, bias=has_bias[1]))

    scales = {"weight_variance": 2.0, "bias_variance": 0.3}
    assert gp_of(net(False, False), **scales).bias_variance == 0.0
    assert gp_of(net(True, False), **scales).bias_variance == (0.3, 0.0)
    assert gp_of(net(True, True), **scales).bias_variance == 0.3


def test_networks_that_end_in_an_activation():
    net = nn.Sequential(nn.Linear(2, 9), nn.Tanh())
    assert_allclose(
        gp_of(net, lengthscale=1.0)(POINTS), NetworkKernel("tanh")(POINTS), rtol=1e-13
    )


def test_own_activations():
    class Sin(nn.Module):
        def forward(self, z):
            return z.sin()

    with pytest.raises(UnsupportedModelError, match=r'activations=\{Sin: "sin"\}'):
        gp_of(mlp(Sin()), lengthscale=1.0)
    found = gp_of(mlp(Sin()), lengthscale=1.0, activations={Sin: "sin"})
    expected = NetworkKernel(["sin", "identity"])
    assert_allclose(found(POINTS), expected(POINTS))


@pytest.mark.parametrize("shared", [True, False])
def test_wide_torch_networks_have_this_covariance(shared):
    """Random nets with dropout on, many outputs each; fewer nets than units."""
    width, n_nets, weight, bias = 500, 100, 1.6, 0.4
    net = nn.Sequential(
        nn.Linear(2, width),
        nn.Tanh(),
        nn.Dropout(0.2),
        nn.Linear(width, width),
        nn.ReLU(),
        nn.Dropout(0.4),
        nn.Linear(width, width),
    ).double()
    expected = gp_of(net, weight_variance=weight, bias_variance=bias, shared=shared)
    points = torch.tensor(POINTS)
    products = []
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for _ in range(n_nets):
            _initialise(net, weight, bias)
            out = _one_mask(net, points) if shared else net(points)
            products.append((out @ out.T / width).detach())
    assert_mean_is(torch.stack(products), torch.tensor(expected(POINTS)))


def _initialise(net, weight, bias):
    for module in net:
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=math.sqrt(weight / module.in_features))
            nn.init.normal_(module.bias, std=math.sqrt(bias))


def _one_mask(net, points):
    for module in net:
        if isinstance(module, nn.Dropout):
            points = points * module(torch.ones_like(points[:1]))
        else:
            points = module(points)
    return points


def test_the_model_is_not_changed():
    net = mlp(nn.ReLU(), nn.Tanh()).eval()
    before = copy.deepcopy(net.state_dict())
    gp_of(net, lengthscale=1.0)(POINTS)
    assert all(torch.equal(net.state_dict()[k], v) for k, v in before.items())
    assert not any(module.training for module in net.modules())


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (nn.Sequential(nn.Conv2d(1, 2, 3)), "Conv2d has no place"),
        (nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), "BatchNorm1d has no"),
        (nn.LSTM(2, 3), "LSTM has no place"),
        (nn.Sequential(nn.Linear(2, 3), nn.Softmax(-1)), "Softmax has no place"),
        (nn.Sequential(nn.ReLU(), nn.Linear(2, 3)), "follow directly upon nn.Linear"),
        (mlp(nn.Sequential(nn.ReLU(), nn.Tanh())), "one upon each. Got Tanh"),
        (
            nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.1), nn.ReLU()),
            "follow directly",
        ),
        (nn.Sequential(nn.Dropout(0.1), nn.Linear(2, 1)), r"gp_of\(model\[1:\]"),
        (nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.1)), "without its last"),
        (nn.Sequential(), "no nn.Linear"),
    ],
)
def test_what_is_not_a_plain_network(net, message):
    with pytest.raises(UnsupportedModelError, match=message):
        gp_of(net, lengthscale=1.0)


def test_bad_input():
    net = mlp(nn.ReLU())
    with pytest.raises(InputTypeError, match=r"torch.nn.Module"):
        gp_of("relu", lengthscale=1.0)
    with pytest.raises(ParameterError, match="either lengthscale"):
        gp_of(net)
    with pytest.raises(ParameterError, match="either lengthscale"):
        gp_of(net, lengthscale=1.0, weight_variance=1.0)
    with pytest.raises(ParameterError, match="leave it out"):
        gp_of(net, lengthscale=1.0, bias_variance=1.0)
    with pytest.raises(ParameterError, match="weight_variance must be finite"):
        gp_of(net, weight_variance=-1.0)
    with pytest.raises(ShapeError, match="after 3 units"):
        gp_of(nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 1)), lengthscale=1.0)
