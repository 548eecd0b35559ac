"""The decay is the gradient of the bound, and training is deterministic."""

import pytest
import torch
from torch import nn

from caveat.demo.training import decay_groups, fit, half_squared_error, own_randomness


def make_net() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(2, 3), nn.ReLU(), nn.Dropout(0.1), nn.Linear(3, 1)
    ).double()


def test_decay_is_the_gradient_of_the_kl_term() -> None:
    """theory.md 5: (p l²/2) |M|² + (l²/2) |m|², divided by tau N, with W = p M."""
    net, lengthscale, precision, n_train, keep = make_net(), 0.3, 4.0, 200, 0.9
    first, last = net[0], net[3]
    term = keep * (last.weight / keep).square().sum()
    for tensor in (first.weight, first.bias, last.bias):
        term = term + tensor.square().sum()
    (0.5 * lengthscale**2 * term / (precision * n_train)).backward()
    groups = decay_groups(
        net, lengthscale=lengthscale, precision=precision, n_train=n_train
    )
    assert sum(len(group["params"]) for group in groups) == 4
    for group in groups:
        (tensor,) = group["params"]
        torch.testing.assert_close(group["weight_decay"] * tensor, tensor.grad)


def test_decay_of_the_reference_value() -> None:
    """theory.md 13: keep .9, l 1, N 200, lambda 1e-3, inverted weights: tau 2.78."""
    groups = decay_groups(
        make_net(), lengthscale=1.0, precision=2.7777777778, n_train=200
    )
    assert groups[2]["weight_decay"] == pytest.approx(2e-3)  # 2 lambda


def test_half_squared_error_sums_over_outputs() -> None:
    predicted, observed = torch.ones(4, 3), torch.zeros(4, 3)
    assert half_squared_error(predicted, observed) == 1.5


def trained(seed: int) -> nn.Sequential:
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None].expand(-1, 2)
    with own_randomness(seed):
        net = make_net()
        groups = decay_groups(net, lengthscale=0.1, precision=1.0, n_train=20)
        data = (x, x[:, :1])
        fit(net, groups, half_squared_error, data, n_steps=20, batch_size=8)
    return net


def test_training_is_deterministic_and_leaves_global_randomness_alone() -> None:
    state = torch.get_rng_state()
    first, again, other = (trained(seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
    assert not first.training
