"""Noise on the units that enter a layer: modules to put anywhere in a forward pass."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from caveat.noise.base import NoisyLayer, bias_kl, checked_lengthscale
from caveat.noise.layers import (
    WeightLayer,
    require_plain_forward,
    rows,
    run_with,
    unit_axis,
)
from caveat.theory.divergence import Lengthscale


class UnitNoise(nn.Module, ABC):
    """Multiplies units by noise of mean one; does nothing in evaluation mode.

    Attributes
    ----------
    spatial : bool
        One number for each unit and row of the batch, the same at all positions
        (pixels, time steps); otherwise each element has a number of its own.
    axis : int
        The axis of the units, counted from the end: -1, or -3 for images.
    """

    def __init__(self, *, spatial: bool = False, axis: int = -1) -> None:
        super().__init__()
        self.spatial = spatial
        self.axis = axis

    @property
    def keep_prob(self) -> float | None:
        """Pr(keep), if that is all there is to know about the noise."""
        return None

    @abstractmethod
    def kl(self, rows: Tensor, lengthscale: Lengthscale) -> Tensor:
        """KL of the weights that these units feed, for the bound.

        ``rows`` has the shape (units, weights of a unit): ``weight.T`` of a linear
        layer, without its bias.
        """

    def noise_shape(self, x: Tensor) -> tuple[int, ...]:
        """The shape of the noise for ``x``."""
        return spread_shape(x, self.axis) if self.spatial else tuple(x.shape)

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return f"spatial={self.spatial}, axis={self.axis}"


class InputNoisyLayer(NoisyLayer):
    """A layer whose input units are noisy, and maybe its biases."""

    def __init__(
        self, layer: WeightLayer, noise: UnitNoise, bias_noise: UnitNoise | None = None
    ) -> None:
        super().__init__(layer)
        if bias_noise is not None:
            require_plain_forward(layer)
        self.noise = noise
        self.bias_noise = bias_noise

    def forward(self, x: Tensor) -> Tensor:
        """The layer on noisy units."""
        x = self.noise(x)
        if self.bias_noise is None or self.bias is None or not self.training:
            return self.layer(x)
        y = run_with(self.layer, x, self.weight, None)
        axis = unit_axis(self.layer)
        bias = self.bias.reshape(-1, *[1] * (-1 - axis))
        return y + self.bias_noise(bias.expand(spread_shape(y, axis)))

    def kl(self, lengthscale: Lengthscale) -> Tensor:
        """KL of weights and biases; see the family for what is left out."""
        length = checked_lengthscale(lengthscale)
        weights = self.noise.kl(rows(self.layer, self.weight), length)
        return weights + bias_kl(self.layer, self._bias_keep_prob(), length)

    def keep_probs(self) -> dict[Tensor, float]:
        """Keep probability of each parameter, if the KL is a weight decay."""
        keep = self.noise.keep_prob
        return {} if keep is None else self._decays(keep, self._bias_keep_prob())

    def _bias_keep_prob(self) -> float:
        keep = None if self.bias_noise is None else self.bias_noise.keep_prob
        return 1.0 if keep is None else keep


def spread_shape(x: Tensor, axis: int) -> tuple[int, ...]:
    """The shape of ``x`` with all but the units and the rows of the batch made one."""
    shape = [1] * x.dim()
    shape[axis] = x.shape[axis]
    if x.dim() > -axis:
        shape[0] = x.shape[0]
    return torch.Size(shape)
