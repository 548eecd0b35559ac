"""Multiplicative Gaussian noise N(1, α) on units."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from caveat import _validation as validation
from caveat.noise.base import Noise, checked_lengthscale
from caveat.noise.layers import WeightLayer, unit_axis
from caveat.noise.units import InputNoisyLayer, UnitNoise
from caveat.theory import divergence
from caveat.theory.divergence import Lengthscale


class GaussianNoise(UnitNoise):
    """Multiplies units by N(1, α).

    Parameters
    ----------
    variance : float
        α.
    spatial : bool
        One number for a unit at all positions of a row.
    axis : int
        The axis of the units, counted from the end: -1, or -3 for images.

    Examples
    --------
    >>> noise = GaussianNoise(0.25)
    >>> noise(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, variance: float, *, spatial: bool = False, axis: int = -1
    ) -> None:
        super().__init__(spatial=spatial, axis=axis)
        self.variance = validation.positive("variance", variance)

    def forward(self, x: Tensor) -> Tensor:
        """``x`` times the noise."""
        if not self.training:
            return x
        noise = torch.randn(self.noise_shape(x), dtype=x.dtype, device=x.device)
        return x * (1 + math.sqrt(self.variance) * noise)

    def kl(self, rows: Tensor, lengthscale: Lengthscale) -> Tensor:
        """(l²/2)(1 + α) |w|² - log(α |w|²)/2 over rows w (ledger E32)."""
        length = checked_lengthscale(lengthscale)
        return divergence.multiplied(rows, self.variance, length).sum()

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return f"variance={self.variance:g}, {super().extra_repr()}"


@dataclass(frozen=True)
class Gaussian(Noise):
    """Inputs of a layer times N(1, α), one number for each unit (Srivastava 2014).

    A row of weights w is then N(w, α w w' + s² I) with s -> 0. ``kl`` is the sum over
    rows of (l²/2)(1 + α) |w|² - log(α |w|²)/2 (ledger E32), plus (l²/2) |b|²;
    constants in w are left out. The first term is the weight decay of dropout with the
    same variance; the second keeps rows from vanishing, so this is *not* a weight decay
    alone. Paper 000 (section 4.1) gives q without its scale and per weight.

    Parameters
    ----------
    variance : float
        α, above 0.
    spatial : bool
        One number for a unit at all positions of a row.

    Examples
    --------
    >>> Gaussian.matching(drop_rate=0.5)
    Gaussian(variance=1.0, spatial=False)
    """

    variance: float = 0.1
    spatial: bool = False

    def __post_init__(self) -> None:
        validation.positive("variance", self.variance)

    @classmethod
    def matching(cls, drop_rate: float, *, spatial: bool = False) -> "Gaussian":
        """The noise with the mean and variance of dropout, α = f / (1 - f)."""
        rate = _positive_rate(drop_rate)
        # E31: a = f / (1 - f)
        return cls(rate / (1.0 - rate), spatial)

    def _wrapped(self, layer: WeightLayer) -> InputNoisyLayer:
        axis = unit_axis(layer)
        noise = GaussianNoise(self.variance, spatial=self.spatial, axis=axis)
        return InputNoisyLayer(layer, noise)


def _positive_rate(value: float) -> float:
    return validation.positive(
        "drop_rate", validation.drop_rate(value, where="Gaussian noise")
    )
