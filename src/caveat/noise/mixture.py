"""The mixture of paper 000, eqs 9-13, whose components keep their width σ."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from caveat import _validation as validation
from caveat.noise.base import Noise, WeightNoisyLayer, checked_lengthscale
from caveat.noise.layers import WeightLayer, along_rows, n_rows, rows
from caveat.theory import divergence
from caveat.theory.divergence import Lengthscale


class MixtureLayer(WeightNoisyLayer):
    """A layer with weights z M + σ ε and biases m + σ ε."""

    def __init__(self, layer: WeightLayer, drop_rate: float, std: float) -> None:
        super().__init__(layer)
        self.drop_rate = drop_rate
        self.std = std

    def sample(self) -> tuple[Tensor, Tensor | None]:
        """Draw a mask for the rows, and normal numbers for weights and biases."""
        ones = self.weight.new_ones(n_rows(self.layer))
        mask = along_rows(self.layer, F.dropout(ones, self.drop_rate))
        # E35: W = z M + s eps, b = m + s eps
        weight = with_normal(self.weight * mask, self.std)
        return weight, None if self.bias is None else with_normal(self.bias, self.std)

    def kl(self, lengthscale: Lengthscale) -> Tensor:
        """KL in full, by an integral for each row of weights (ledger E24, E26)."""
        length = checked_lengthscale(lengthscale)
        weights, keep_prob = rows(self.layer, self.weight), 1.0 - self.drop_rate
        each = divergence.two_components(weights, keep_prob, math.log(self.std), length)
        return each.sum() + normal_bias_kl(self.bias, self.std, length)

    def keep_probs(self) -> dict[Tensor, float]:
        """Keep probabilities: with them the decay is paper 000's proposition 1."""
        return self._decays(1.0 - self.drop_rate, 1.0)

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return f"drop_rate={self.drop_rate:g}, std={self.std:g}"


@dataclass(frozen=True)
class Mixture(Noise):
    """Dropout with σ that does not vanish: W = z M + σ ε, b = m + σ ε.

    A row of weights, those of one input unit, is p N(M, σ² I) + (1-p) N(0, σ² I)
    (paper 000 eqs 9-13, ledger E35). The layer stores W = p M, the mean. One draw
    serves all rows of a call. ``kl`` is complete, constants and all, and exact: an
    integral along the line through the two components, not proposition 1, which is
    larger (ledger E24, E26).

    Parameters
    ----------
    drop_rate : float
        f = 1 - p.
    std : float
        σ, above 0, the same for all weights and biases.

    Examples
    --------
    >>> from torch import nn
    >>> layer = Mixture(drop_rate=0.1, std=0.05).wrap(nn.Linear(3, 2))
    >>> bool(layer.kl(lengthscale=1.0) > 0)
    True
    """

    drop_rate: float = 0.1
    std: float = 0.1

    def __post_init__(self) -> None:
        validation.drop_rate(self.drop_rate, where="Mixture")
        validation.positive("std", self.std)

    def _wrapped(self, layer: WeightLayer) -> MixtureLayer:
        return MixtureLayer(layer, float(self.drop_rate), float(self.std))


def with_normal(mean: Tensor, std: float) -> Tensor:
    """``mean`` plus normal numbers of this standard deviation."""
    return mean + std * torch.randn_like(mean)


def normal_bias_kl(
    bias: Tensor | None, std: float, length: Lengthscale
) -> Tensor | float:
    """KL of biases N(m, σ²); 0 if there are none."""
    if bias is None:
        return 0.0
    return divergence.gaussian(bias, math.log(std), length).sum()
