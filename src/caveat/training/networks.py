"""Networks of a fleet as ordinary PyTorch modules, and the way back."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from caveat.noise import GaussianNoise, Noise
from caveat.training.activations import activation
from caveat.training.members import Architecture
from caveat.training.spec import NetworkSpec
from caveat.training.stack import layers
from caveat.training.streams import first_weights


class NoiseSite(NamedTuple):
    """A module that multiplies units by noise, and its path in the network."""

    path: str
    module: nn.Module


def network(
    spec: NetworkSpec, weights: Sequence[tuple[Tensor, Tensor]]
) -> nn.Sequential:
    """An ordinary PyTorch network with the given weights and the noise of a spec.

    Parameters
    ----------
    spec : NetworkSpec
        Its non-linearity, noise and drop rates count.
    weights : sequence of (weight, bias)
        Of each layer, weights as (inputs, outputs).

    Returns
    -------
    nn.Sequential
        In evaluation mode, holding copies.
    """
    modules: list[nn.Module] = []
    pairs = zip(spec.drop_rates, weights, strict=True)
    for place, (rate, (weight, bias)) in enumerate(pairs):
        if place:
            modules.append(activation(spec.activation).module())
        linear = _linear(weight, bias)
        if isinstance(spec.noise, Noise):
            modules.append(spec.noise.wrap(linear) if rate else linear)
            continue
        if rate:
            modules.append(_noise_module(spec.noise, rate))
        modules.append(linear)
    return nn.Sequential(*modules).eval()


def untrained(
    spec: NetworkSpec, architecture: Architecture, seed: int
) -> nn.Sequential:
    """The network of a member with its first weights, whatever its noise is."""
    flat = torch.from_numpy(first_weights(architecture, seed))
    return network(spec, of_one(flat[None], architecture))


def of_one(flat: Tensor, architecture: Architecture) -> list[tuple[Tensor, Tensor]]:
    """Weights (inputs, outputs) and biases (outputs,) of the only row of ``flat``."""
    return [(weight[0], bias[0, 0]) for weight, bias in layers(flat, architecture)]


def noise_sites(spec: NetworkSpec) -> list[NoiseSite | None]:
    """The noise of each weight layer in :func:`network`; None where there is none.

    For noise on units; a family of noise is part of its layer.
    """
    assert isinstance(spec.noise, str)
    sites: list[NoiseSite | None] = []
    place = 0
    for rate in spec.drop_rates:
        place += bool(sites)  # the non-linearity before it
        found = NoiseSite(str(place), _noise_module(spec.noise, rate)) if rate else None
        sites.append(found)
        place += 2 if rate else 1
    return sites


def flat_parameters(net: nn.Sequential) -> Tensor:
    """All parameters of a network of plain layers as one row, as a stack has them."""
    linears = [module for module in net if isinstance(module, nn.Linear)]
    parts = [p for m in linears for p in (m.weight.T.reshape(-1), m.bias)]
    return torch.cat(parts).detach()


def _linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    layer: nn.Linear = nn.utils.skip_init(nn.Linear, *weight.shape)
    with torch.no_grad():
        layer.weight.copy_(weight.T)
        layer.bias.copy_(bias.reshape(-1))
    return layer


def _noise_module(noise: str, drop_rate: float) -> nn.Module:
    if noise == "bernoulli":
        return nn.Dropout(drop_rate)
    return GaussianNoise(drop_rate / (1.0 - drop_rate))
