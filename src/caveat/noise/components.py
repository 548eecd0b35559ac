"""A mixture with more than two components, the first extension paper 000 names."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor, nn

from caveat import _validation as validation
from caveat.errors import ParameterError
from caveat.noise.base import Noise, WeightNoisyLayer, checked_lengthscale
from caveat.noise.layers import WeightLayer, along_rows, n_rows, rows
from caveat.noise.mixture import normal_bias_kl, with_normal
from caveat.theory import divergence
from caveat.theory.divergence import Lengthscale


class ComponentsLayer(WeightNoisyLayer):
    """A layer each row of which is one of several Gaussians."""

    def __init__(
        self, layer: WeightLayer, probabilities: Sequence[float], std: float
    ) -> None:
        super().__init__(layer)
        self.probabilities = tuple(probabilities)
        self.std = std
        levels = layer.weight.new_tensor(_levels(self.probabilities))
        offsets = torch.tensordot(levels - 1, layer.weight.detach()[None], 0)
        self.offsets = nn.Parameter(offsets.squeeze(1))

    @property
    def means(self) -> Tensor:
        """Means of the components, (components, *weight.shape): around the weight."""
        share = self.offsets.new_tensor(self.probabilities)
        return self.weight + self.offsets - torch.tensordot(share, self.offsets, 1)

    def sample(self) -> tuple[Tensor, Tensor | None]:
        """Draw a component for each row, and normal numbers."""
        weight = self.weight
        uniform = torch.rand(
            n_rows(self.layer), dtype=weight.dtype, device=weight.device
        )
        chosen = along_rows(self.layer, self._chosen(uniform))
        drawn = with_normal((self.means * chosen).sum(0), self.std)
        return drawn, None if self.bias is None else with_normal(self.bias, self.std)

    def kl(self, lengthscale: Lengthscale) -> Tensor:
        """KL from above, with all constants (ledger E36, E37)."""
        length = checked_lengthscale(lengthscale)
        means = rows(self.layer, self.means)
        each = divergence.components(means, self.probabilities, self.std, length)
        return each.sum() + normal_bias_kl(self.bias, self.std, length)

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return f"probabilities={self.probabilities}, std={self.std:g}"

    def _chosen(self, uniform: Tensor) -> Tensor:
        """One for the component that each number falls into, (components, rows)."""
        edges = list(accumulate(self.probabilities))[:-1]
        above = uniform >= uniform.new_tensor(edges).unsqueeze(-1)
        above = above.to(uniform.dtype)
        one, zero = torch.ones_like(above[:1]), torch.zeros_like(above[:1])
        return torch.cat([one, above]) - torch.cat([above, zero])


@dataclass(frozen=True)
class Components(Noise):
    """A mixture of several Gaussians for each row of weights (paper 000, section 4.2).

    A row, the weights of one input unit, is sum_i π_i N(μ_i, σ² I); the means are
    learned (``offsets``) around the stored weight W = sum_i π_i μ_i, and start on the
    line through 0 and W, evenly spaced: with two components this is the mixture of
    dropout, whose drop rate is the first probability. Biases are N(b, σ²). One draw
    serves all rows of a call.

    ``kl`` has all constants and is never too small: proposition 1 less a lower bound of
    the information about the component, from pairwise distances (ledger E36, E37;
    Kolchinsky and Tracey 2017). So the bound stays a bound.

    Parameters
    ----------
    probabilities : sequence of float
        π_i, two or more, above 0, with sum 1; that of the component at 0 first.
    std : float
        σ, above 0.

    Examples
    --------
    >>> family = Components(probabilities=(0.1, 0.2, 0.7), std=0.05)
    >>> layer = family.wrap(nn.Linear(4, 2))
    >>> layer.means.shape
    torch.Size([3, 2, 4])
    """

    probabilities: tuple[float, ...] = (0.1, 0.2, 0.7)
    std: float = 0.1

    def __post_init__(self) -> None:
        validation.positive("std", self.std)
        each = [validation.unit_interval("probabilities", p) for p in self._listed()]
        if len(each) < 2 or not math.isclose(sum(each), 1.0, abs_tol=1e-6):
            raise ParameterError(
                f"probabilities must be two or more numbers with sum 1. "
                f"Got {self.probabilities!r}."
            )

    def _wrapped(self, layer: WeightLayer) -> ComponentsLayer:
        return ComponentsLayer(layer, self._listed(), float(self.std))

    def _listed(self) -> tuple[float, ...]:
        return tuple(self.probabilities)


def _levels(probabilities: Sequence[float]) -> list[float]:
    """Evenly spaced from 0, with mean one under ``probabilities``."""
    mean = sum(level * share for level, share in enumerate(probabilities))
    return [level / mean for level in range(len(probabilities))]
