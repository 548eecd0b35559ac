"""Gaussian weights with a covariance of low rank plus a diagonal.

Paper 000 names it in section 4.2, to capture relations between weights.
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


class LowRankLayer(WeightNoisyLayer):
    """A layer whose weights and biases are jointly Gaussian."""

    def __init__(self, layer: WeightLayer, rank: int, initial_std: float) -> None:
        super().__init__(layer)
        mean = self._mean().detach()
        half = initial_std / math.sqrt(2.0)  # the variance in equal shares
        self.log_std = nn.Parameter(torch.full_like(mean, math.log(half)))
        directions = _directions(rank, len(mean)).to(mean)
        self.factors = nn.Parameter(directions * half / math.sqrt(rank))

    def sample(self) -> tuple[Tensor, Tensor | None]:
        """Draw all weights and biases together."""
        mean, factors = self._mean(), self.factors
        common = torch.randn(len(factors), dtype=mean.dtype, device=mean.device)
        own = self.log_std.exp() * torch.randn_like(mean)
        drawn = mean + own + common @ factors
        weight = drawn[: self.weight.numel()].reshape(self.weight.shape)
        return weight, None if self.bias is None else drawn[self.weight.numel() :]

    def kl(self, lengthscale: Lengthscale) -> Tensor:
        """KL in full (ledger E38)."""
        length = checked_lengthscale(lengthscale)
        return divergence.low_rank(self._mean(), self.log_std, self.factors, length)

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return f"rank={len(self.factors)}"

    def _mean(self) -> Tensor:
        """Weights, then biases, as one vector."""
        weight = self.weight.flatten()
        return weight if self.bias is None else torch.cat([weight, self.bias])


@dataclass(frozen=True)
class LowRank(Noise):
    """All weights and biases of a layer jointly Gaussian, N(m, diag(s²) + V'V).

    Besides a width of its own each weight moves along ``rank`` common directions, the
    rows of V, so that relations between weights are learned; m, log s and V all by
    gradients through w = m + s ε + V'η. One draw serves all rows of a call. V starts in
    arbitrary directions, the same ones for all layers of a size. ``kl`` is complete
    (ledger E38).

    Parameters
    ----------
    rank : int
        Number of common directions.
    initial_std : float
        Standard deviation of a weight before training, half of its variance common.

    Examples
    --------
    >>> layer = LowRank(rank=2, initial_std=0.1).wrap(nn.Linear(3, 2))
    >>> layer.factors.shape, layer.log_std.shape
    (torch.Size([2, 8]), torch.Size([8]))
    """

    rank: int = 2
    initial_std: float = 0.05

    def __post_init__(self) -> None:
        validation.positive_int("rank", self.rank)
        validation.positive("initial_std", self.initial_std)

    def _wrapped(self, layer: WeightLayer) -> LowRankLayer:
        return LowRankLayer(layer, int(self.rank), float(self.initial_std))


def _directions(rank: int, size: int) -> Tensor:
    """Normal numbers from a generator of their own, the same on every device."""
    return torch.randn(rank, size, generator=torch.Generator().manual_seed(0))
