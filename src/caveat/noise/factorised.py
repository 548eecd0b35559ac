"""Factorised Gaussian weights: variational inference in the manner of Graves.

.. [Graves2011] A. Graves. Practical variational inference for neural networks.
   NeurIPS 2011.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from caveat import _validation as validation
from caveat.noise.base import Noise, WeightNoisyLayer, checked_lengthscale
from caveat.noise.layers import WeightLayer
from caveat.theory import divergence
from caveat.theory.divergence import Lengthscale


class FactorisedLayer(WeightNoisyLayer):
    """A layer whose weights and biases are independent Gaussians."""

    def __init__(self, layer: WeightLayer, initial_std: float) -> None:
        super().__init__(layer)
        start = math.log(initial_std)
        self.log_std = nn.Parameter(torch.full_like(layer.weight.detach(), start))
        self.log_sd_bias = like_bias(layer, start)

    def sample(self) -> tuple[Tensor, Tensor | None]:
        """Draw every weight and bias."""
        weight = self.weight + self.log_std.exp() * torch.randn_like(self.weight)
        if self.bias is None or self.log_sd_bias is None:
            return weight, None
        return weight, self.bias + self.log_sd_bias.exp() * torch.randn_like(self.bias)

    def kl(self, lengthscale: Lengthscale) -> Tensor:
        """KL in full (ledger E26)."""
        length = checked_lengthscale(lengthscale)
        weights = divergence.gaussian(self.weight, self.log_std, length).sum()
        if self.bias is None or self.log_sd_bias is None:
            return weights
        biases = divergence.gaussian(self.bias, self.log_sd_bias, length)
        return weights + biases.sum()


@dataclass(frozen=True)
class FactorisedGaussian(Noise):
    """Independent Gaussian weights and biases with learned widths [Graves2011]_.

    w = m + s ε, the mean m and log s of every weight learned by gradients through the
    draw. One draw serves all rows of a call. ``kl`` is complete:
    (l² m² + l² s² - log(l² s²) - 1)/2 over all weights and biases (ledger E26).

    Parameters
    ----------
    initial_std : float
        s before training.

    Examples
    --------
    >>> layer = FactorisedGaussian(initial_std=0.05).wrap(nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['log_std', 'log_sd_bias', 'layer.weight', 'layer.bias']
    """

    initial_std: float = 0.05

    def __post_init__(self) -> None:
        validation.positive("initial_std", self.initial_std)

    def _wrapped(self, layer: WeightLayer) -> FactorisedLayer:
        return FactorisedLayer(layer, float(self.initial_std))


def like_bias(layer: WeightLayer, value: float) -> nn.Parameter | None:
    """A parameter of the shape of the bias, full of ``value``; None without bias."""
    if layer.bias is None:
        return None
    return nn.Parameter(torch.full_like(layer.bias.detach(), value))
