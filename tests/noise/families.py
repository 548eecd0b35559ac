"""One of each family, layers to put them on, and moments that weight noise implies."""

import itertools
from typing import Any

import torch
from torch import Tensor, nn

import caveat
from caveat import noise
from tests.statistics import assert_mean_is

FAMILIES = [
    noise.Bernoulli(0.3),
    noise.Bernoulli(0.3, spatial=True, on_biases=True),
    noise.Gaussian(0.4),
    noise.Gaussian(0.4, spatial=True),
    noise.DropConnect(0.3),
    noise.DropConnect(0.3, on_biases=True),
    noise.Concrete(0.3),
    noise.Mixture(0.3, std=0.2),
    noise.Components((0.2, 0.3, 0.5), std=0.2),
    noise.LowRank(rank=2, initial_std=0.2),
    noise.FactorisedGaussian(0.2),
]

LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "linear": (lambda: nn.Linear(4, 3), (5, 4)),
    "linear on sequences": (lambda: nn.Linear(4, 3, bias=False), (5, 6, 4)),
    "linear without batch": (lambda: nn.Linear(4, 3), (4,)),
    "conv1d": (lambda: nn.Conv1d(4, 2, 2, dilation=2, bias=False), (5, 4, 8)),
    "conv2d, groups": (
        lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
        (5, 4, 8, 8),
    ),
    "conv2d, reflected": (
        lambda: nn.Conv2d(4, 2, 3, padding=1, padding_mode="reflect"),
        (5, 4, 8, 8),
    ),
    "conv3d without batch": (lambda: nn.Conv3d(4, 2, 2), (4, 3, 3, 3)),
}


def settings(family: noise.Noise) -> str:
    return str(family)


def linear() -> nn.Linear:
    """Three units to two, with weights that are all different."""
    layer = nn.Linear(3, 2).double()
    with torch.no_grad():
        layer.weight.copy_(double([[1.0, -0.5, 2.0], [0.3, 1.5, -1.0]]))
        layer.bias.copy_(double([0.4, -0.7]))
    return layer


def double(values: Any) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def bernoulli_covariance(layer: nn.Linear, variance: float) -> Tensor:
    """Cov of (W, b) if each unit is multiplied by noise of this variance."""
    size = layer.weight.numel() + layer.bias.numel()
    covariance = torch.zeros(size, size).double()
    outputs, units = layer.weight.shape
    for o, other, j in itertools.product(range(outputs), range(outputs), range(units)):
        product = layer.weight[o, j] * layer.weight[other, j]
        covariance[o * units + j, other * units + j] = variance * product.detach()
    return covariance


def assert_draws_have(
    family: noise.Noise,
    covariance: Tensor,
    *,
    shrunk: float = 1.0,
    make: Any = None,
    n_draws: int = 4000,
) -> None:
    """Draws of a wrapped layer have the moments of W ~ (mean, ``covariance``).

    ``covariance`` is that of (W, b) flattened; the mean is the stored weight, times
    ``shrunk``. Two rows of input share each draw, so their outputs are correlated.
    """
    x = double([[0.7, -1.1, 0.4], [1.0, 0.5, -2.0]])
    wrapped = (make or family.wrap)(linear())
    layer = wrapped.layer
    design = torch.zeros(2, 2, 8).double()  # shape: (rows, outputs, parameters)
    for o in range(2):
        design[:, o, 3 * o : 3 * o + 3] = x
        design[:, o, 6 + o] = 1.0
    mean = torch.cat([layer.weight.detach().flatten() * shrunk, layer.bias.detach()])
    design = design.flatten(0, 1)
    draws = caveat.MCDropout(wrapped, seed=3).draws(x, n_draws=n_draws)
    in_evaluation = caveat.MCDropout(wrapped.eval(), seed=3).draws(x, n_draws=20)
    torch.testing.assert_close(in_evaluation, draws[:20], atol=1e-12, rtol=0)
    draws = draws.flatten(1)
    gap = draws - design @ mean
    assert_mean_is(draws, design @ mean)
    assert_mean_is(gap[:, :, None] * gap[:, None], design @ covariance @ design.T)
