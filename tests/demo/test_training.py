"""Training is deterministic, keeps its randomness to itself and flips no mode."""

import math

import torch
from torch import nn

from caveat.demo.training import fit, half_squared_error, layer, noisy_pass
from caveat.noise import weight_decay_groups
from caveat.theory import Loss
from tests.statistics import assert_mean_is, assert_variance_is


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_net(generator: torch.Generator) -> nn.Sequential:
    return nn.Sequential(
        layer(nn.Linear, 2, 3, generator=generator),
        nn.ReLU(),
        nn.Dropout(0.1),
        layer(nn.Linear, 3, 1, generator=generator),
    ).eval()


def test_half_squared_error_sums_over_outputs() -> None:
    predicted, observed = torch.ones(4, 3), torch.zeros(4, 3)
    assert half_squared_error(predicted, observed) == 1.5


def test_first_weights_are_those_of_torch() -> None:
    with torch.random.fork_rng([]):
        torch.manual_seed(5)
        expected = [nn.Conv2d(3, 4, 2), nn.Linear(7, 2)]
    generator = seeded(5)
    found = [
        layer(nn.Conv2d, 3, 4, 2, generator=generator),
        layer(nn.Linear, 7, 2, generator=generator),
    ]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.weight, theirs.weight)
        torch.testing.assert_close(ours.bias, theirs.bias)


def test_a_noisy_pass_is_one_in_training_mode() -> None:
    net, x = make_net(seeded(0)), torch.randn(50, 2, generator=seeded(1))
    with torch.random.fork_rng([]):
        torch.manual_seed(3)
        expected = net.train()(x)
    net.eval()
    torch.testing.assert_close(noisy_pass(net, x, seeded(3)), expected)
    assert not any(module.training for module in net.modules())


def test_masks_have_mean_one_and_the_variance_of_dropout() -> None:
    values = noisy_pass(
        nn.Sequential(nn.Dropout(0.3)), torch.ones(40_000).double(), seeded(0)
    )
    assert_mean_is(values, 1.0)
    assert_variance_is(values, 0.3 / 0.7)


def trained(seed: int, n_steps: int = 20) -> nn.Sequential:
    generator = seeded(seed)
    x = torch.linspace(-1, 1, 100)[:, None].expand(-1, 2)
    net = make_net(generator)
    groups = weight_decay_groups(
        net,
        precision=1.0,
        lengthscale=0.1,
        n_train=100,
        loss=Loss.half_squared_error(),
    )
    data = (x, x[:, :1])
    fit(net, groups, half_squared_error, data, generator=generator, n_steps=n_steps)
    return net


def test_training_is_deterministic_and_leaves_global_randomness_alone() -> None:
    state = torch.get_rng_state()
    first, again, other = (trained(seed) for seed in (0, 0, 1))
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(first[0].weight, again[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
    assert not first.training


def test_training_lowers_the_loss() -> None:
    x = torch.linspace(-1, 1, 100)[:, None].expand(-1, 2)
    losses = [
        half_squared_error(trained(0, steps)(x), x[:, :1]).item() for steps in (1, 600)
    ]
    assert math.isfinite(losses[0]) and losses[1] < 0.5 * losses[0]
