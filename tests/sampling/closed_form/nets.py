"""Tiny networks in double precision, and what enumerating their masks says of them."""

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


def seeded(make: Callable[[], nn.Module], seed: int = 4, scale: float = 2.0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = make().double().eval()
    for parameter in model.parameters():
        parameter.data.mul_(scale)
    return model


def numbers(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def masks(rate: float, *shape: int) -> list[tuple[Tensor, float]]:
    """All masks of a shape, scaled as dropout does, with their probabilities."""
    found = []
    for bits in itertools.product((0.0, 1.0), repeat=math.prod(shape)):
        kept = sum(bits)
        chance = (1 - rate) ** kept * rate ** (len(bits) - kept)
        mask = torch.tensor(bits, dtype=torch.float64).view(shape) / (1 - rate)
        found.append((mask, chance))
    return found


def enumerated(
    function: Callable[..., Tensor], *sites: Sequence[tuple[Tensor, float]]
) -> tuple[Tensor, Tensor]:
    """Mean (batch, *event) and covariance (batch, D, D) over all masks of all sites."""
    outputs, chances = [], []
    for chosen in itertools.product(*sites):
        outputs.append(function(*(mask for mask, _ in chosen)).detach())
        chances.append(math.prod(chance for _, chance in chosen))
    values, weights = torch.stack(outputs), torch.tensor(chances, dtype=torch.float64)
    mean = torch.tensordot(weights, values, 1)
    gap = (values - mean).unsqueeze(-1).flatten(2)
    return mean, torch.einsum("t,tbi,tbj->bij", weights, gap, gap)


def assert_same(left: Tensor, right: Tensor, tolerance: float = 1e-12) -> None:
    left, right = left.detach(), right.detach()
    assert left.shape == right.shape
    scale = 1.0 + float(right.abs().max())
    assert float((left - right).abs().max()) <= tolerance * scale
