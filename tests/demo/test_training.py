"""Training is deterministic and keeps its randomness to itself."""

import torch
from torch import nn

from caveat.demo.training import fit, half_squared_error, own_randomness
from caveat.noise import weight_decay_groups
from caveat.theory import Loss


def make_net() -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(2, 3), nn.ReLU(), nn.Dropout(0.1), nn.Linear(3, 1)
    ).double()


def test_half_squared_error_sums_over_outputs() -> None:
    predicted, observed = torch.ones(4, 3), torch.zeros(4, 3)
    assert half_squared_error(predicted, observed) == 1.5


def trained(seed: int) -> nn.Sequential:
    x = torch.linspace(-1, 1, 20, dtype=torch.float64)[:, None].expand(-1, 2)
    with own_randomness(seed):
        net = make_net()
        groups = weight_decay_groups(
            net,
            precision=1.0,
            lengthscale=0.1,
            n_train=20,
            loss=Loss.half_squared_error(),
        )
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
