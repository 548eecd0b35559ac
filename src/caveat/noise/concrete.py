"""Concrete dropout: the drop rate is learned with the weights.

.. [Gal2017] Y. Gal, J. Hron, A. Kendall. Concrete dropout. NeurIPS 2017.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from caveat import _validation as validation
from caveat.noise.base import Noise, checked_lengthscale, dropped_kl
from caveat.noise.layers import WeightLayer, unit_axis
from caveat.noise.units import InputNoisyLayer, UnitNoise
from caveat.theory import divergence
from caveat.theory.divergence import Lengthscale


class ConcreteNoise(UnitNoise):
    """Dropout with a learned rate, its mask relaxed so that gradients reach the rate.

    z = sigmoid((log(p/(1-p)) + log(u/(1-u))) / t), u uniform (ledger E33) is close to 0
    or 1 for small t. Units are multiplied by z/p. The mean of z is p only as t -> 0 or
    at p = 1/2; the masks of one row are the same at all its positions.

    Parameters
    ----------
    initial_rate : float
        f = 1 - p at the start.
    temperature : float
        t, above 0.
    axis : int
        The axis of the units, counted from the end: -1, or -3 for images.

    Attributes
    ----------
    logit_rate : nn.Parameter
        log(f / (1 - f)), one for all units.

    Examples
    --------
    >>> noise = ConcreteNoise(0.2)
    >>> round(noise.drop_rate.item(), 6)
    0.2
    """

    def __init__(
        self, initial_rate: float = 0.1, *, temperature: float = 0.1, axis: int = -1
    ) -> None:
        super().__init__(spatial=True, axis=axis)
        rate = validation.unit_interval("initial_rate", initial_rate)
        self.temperature = validation.positive("temperature", temperature)
        self.logit_rate = nn.Parameter(torch.tensor(math.log(rate / (1 - rate))))

    @property
    def drop_rate(self) -> Tensor:
        """The rate as it is now, a tensor without axes; gradients flow."""
        return torch.sigmoid(self.logit_rate)

    def forward(self, x: Tensor) -> Tensor:
        """``x`` times the relaxed mask."""
        if not self.training:
            return x
        uniform = torch.rand(self.noise_shape(x), dtype=x.dtype, device=x.device)
        # E33: z = sigmoid((log(p/(1-p)) + log(u/(1-u))) / t)
        kept = torch.sigmoid(
            (torch.logit(uniform) - self.logit_rate) / self.temperature
        )
        return x * (kept * self._inverse_keep_prob())

    def kl(self, rows: Tensor, lengthscale: Lengthscale) -> Tensor:
        """(l²/2p) |W|² - units H(p) (ledger E34); constants are left out."""
        length = checked_lengthscale(lengthscale)
        weights = dropped_kl(rows, 1.0, length) * self._inverse_keep_prob()
        # E34: (l²/(2p)) |W|² - units H(p)
        return weights - len(rows) * divergence.mask_entropy(self.logit_rate)

    def _inverse_keep_prob(self) -> Tensor:
        """1/p, with a gradient that does not overflow before it does."""
        return 1 + self.logit_rate.exp()

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return f"temperature={self.temperature:g}, {super().extra_repr()}"


class ConcreteLayer(InputNoisyLayer):
    """A layer whose inputs are dropped at a learned rate."""

    noise: ConcreteNoise

    @property
    def drop_rate(self) -> Tensor:
        """The rate as it is now, a tensor without axes."""
        return self.noise.drop_rate


@dataclass(frozen=True)
class Concrete(Noise):
    """Dropout on the inputs of a layer with a rate that is learned [Gal2017]_.

    Each layer has its own rate, ``noise.logit_rate``. ``kl`` is
    (l²/2p) |W|² - units H(p) + (l²/2) |b|² (ledger E34): the entropy H(p) of the masks,
    which paper 000 leaves out, holds the rate up and the data term pushes it down, so
    the rate falls as data come in. Constants are left out. Add ``kl`` to the loss of
    *all* N rows, (tau N/2) · mean squared error; a decay in the optimiser cannot do it.

    Parameters
    ----------
    initial_rate : float
        The rate before training.
    temperature : float
        t of the relaxation; masks are sharper, and gradients noisier, for small t.

    Examples
    --------
    >>> layer = Concrete(initial_rate=0.2).wrap(nn.Linear(3, 2))
    >>> [name for name, _ in layer.named_parameters()]
    ['layer.weight', 'layer.bias', 'noise.logit_rate']
    >>> layer.kl(lengthscale=0.1).backward()
    """

    initial_rate: float = 0.1
    temperature: float = 0.1

    def __post_init__(self) -> None:
        validation.unit_interval("initial_rate", self.initial_rate)
        validation.positive("temperature", self.temperature)

    def _wrapped(self, layer: WeightLayer) -> ConcreteLayer:
        axis, weight = unit_axis(layer), layer.weight
        noise = ConcreteNoise(
            self.initial_rate, temperature=self.temperature, axis=axis
        )
        return ConcreteLayer(layer, noise.to(weight.device, weight.dtype))
