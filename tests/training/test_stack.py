"""Derivatives by hand against autograd, and Adam against torch's."""

import pytest
import torch
from torch import nn

from caveat.training.activations import ACTIVATIONS
from caveat.training.members import Architecture
from caveat.training.networks import network
from caveat.training.objectives import (
    GaussianWithPrecision,
    SoftmaxCrossEntropy,
    SquaredError,
)
from caveat.training.spec import NetworkSpec
from caveat.training.stack import Adam, Stack, Workspace, layers, per_layer

NETWORKS, ROWS, INPUTS = 3, 5, 4


@pytest.fixture
def rng():
    return torch.Generator().manual_seed(0)


def a_stack(objective, activation, n_targets, rng):
    architecture = Architecture(
        INPUTS, (6, 7), objective.n_outputs(n_targets), activation
    )
    flat = 0.5 * torch.randn(NETWORKS, architecture.n_parameters, generator=rng)
    return Stack(architecture, objective), flat


def a_workspace(architecture, targets, rng):
    work = Workspace(architecture, NETWORKS, ROWS)
    table = torch.cat([torch.randn(NETWORKS * ROWS, INPUTS, generator=rng), targets], 1)
    places = torch.arange(NETWORKS * ROWS).view(NETWORKS, ROWS)
    share = torch.rand(NETWORKS, ROWS, 1, generator=rng)
    work.load(table, places, share)
    return work


def by_autograd(stack, flat, work, factors):
    flat = flat.clone().requires_grad_()
    module = ACTIVATIONS[stack.architecture.activation].module()
    h = work.x
    for place, (weight, bias) in enumerate(layers(flat, stack.architecture)):
        h = module(h) if place else h
        h = h if factors[place] is None else h * factors[place]
        h = h @ weight + bias
    loss = stack.objective.loss(h, work.y) * work.share.squeeze(-1)
    (gradient,) = torch.autograd.grad(loss.sum(), flat)
    return gradient


OBJECTIVES = {
    "squared": (SquaredError(), 2),
    "precision": (GaussianWithPrecision(), 2),
    "softmax": (SoftmaxCrossEntropy(3), 1),
}


@pytest.mark.parametrize("kind", OBJECTIVES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_gradient_is_that_of_autograd(kind, activation, rng):
    objective, n_targets = OBJECTIVES[kind]
    stack, flat = a_stack(objective, activation, n_targets, rng)
    targets = torch.randint(0, 3, (NETWORKS * ROWS, n_targets), generator=rng).float()
    work = a_workspace(stack.architecture, targets, rng)
    factors = [
        None,
        torch.rand(NETWORKS, ROWS, 6, generator=rng).round() * 2,
        torch.randn(NETWORKS, ROWS, 7, generator=rng),
    ]
    found = torch.empty_like(flat)
    into = layers(found, stack.architecture)
    stack.gradient(layers(flat, stack.architecture), into, work, factors)
    expected = by_autograd(stack, flat, work, factors)
    torch.testing.assert_close(found, expected, rtol=2e-4, atol=1e-5)


def test_bounded_log_precision_has_no_gradient(rng):
    outputs = torch.tensor([[[0.5, 20.0]]])
    gradient = GaussianWithPrecision().gradient(outputs, torch.zeros(1, 1, 1))
    assert gradient[0, 0, 1] == 0 and gradient[0, 0, 0] > 0


def test_outputs_are_those_of_the_module(rng):
    stack, flat = a_stack(SquaredError(), "tanh", 2, rng)
    x = torch.randn(NETWORKS, ROWS, INPUTS, generator=rng)
    own = layers(flat, stack.architecture)
    found = stack.outputs(own, x)
    spec = NetworkSpec((6, 7), activation="tanh", drop_rate=0.2, input_drop_rate=0.1)
    for i in range(NETWORKS):
        module = network(spec, [(w[i], b[i]) for w, b in own])
        torch.testing.assert_close(found[i], module(x[i]))
        rates = [m.p for m in module if isinstance(m, nn.Dropout)]
        assert rates == [0.1, 0.2, 0.2]


def test_adam_is_torchs_with_a_rate_per_network(rng):
    flat = torch.randn(2, 10, generator=rng)
    decay = torch.rand(2, 10, generator=rng)
    gradients = torch.randn(20, 2, 10, generator=rng)
    rates = torch.tensor([[1e-2], [3e-3]])
    ours = flat.clone()
    adam = Adam(ours, decay)
    for gradient in gradients:
        adam.step(gradient.clone(), rates)
    for i in range(2):
        theirs = nn.Parameter(flat[i].clone())
        optimiser = torch.optim.Adam([theirs], lr=float(rates[i]))
        for gradient in gradients:
            theirs.grad = gradient[i] + decay[i] * theirs.detach()
            optimiser.step()
        torch.testing.assert_close(ours[i], theirs.data, rtol=1e-4, atol=1e-6)


def test_per_layer_puts_each_value_at_its_layer():
    architecture = Architecture(2, (3,), 1)
    flat = per_layer(
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([5.0, 6.0]), architecture
    )
    expected = [1.0] * 6 + [5.0] * 3 + [2.0] * 3 + [5.0]
    assert flat[0].tolist() == expected
    assert flat[1].tolist() == [3.0] * 6 + [6.0] * 3 + [4.0] * 3 + [6.0]
