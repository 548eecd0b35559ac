"""Bernoulli noise: dropout of units, of whole channels, and of biases."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from caveat import _validation as validation
from caveat.noise.base import Noise, checked_lengthscale, dropped_kl
from caveat.noise.layers import WeightLayer, unit_axis
from caveat.noise.units import InputNoisyLayer, UnitNoise
from caveat.theory.divergence import Lengthscale


class BernoulliNoise(UnitNoise):
    """Dropout as a module: units are zero with probability f, else divided by 1 - f.

    Parameters
    ----------
    drop_rate : float
        f, in [0, 1).
    spatial : bool
        Drop a unit at all positions of a row at once.
    axis : int
        The axis of the units, counted from the end: -1, or -3 for images.

    Examples
    --------
    >>> noise = BernoulliNoise(0.5, spatial=True, axis=-3)
    >>> x = noise(torch.ones(2, 8, 5, 5))  # (batch, channels, height, width)
    >>> bool((x == x[..., :1, :1]).all())
    True
    """

    def __init__(
        self, drop_rate: float, *, spatial: bool = False, axis: int = -1
    ) -> None:
        super().__init__(spatial=spatial, axis=axis)
        self.drop_rate = _rate(drop_rate)

    @property
    def keep_prob(self) -> float:
        """One minus the drop rate."""
        return 1.0 - self.drop_rate

    def forward(self, x: Tensor) -> Tensor:
        """``x`` times the mask."""
        if not self.spatial:
            return F.dropout(x, self.drop_rate, self.training)
        if x.dim() + self.axis == 1:
            return torch.feature_dropout(x, self.drop_rate, self.training)
        ones = x.new_ones(self.noise_shape(x))
        return x * F.dropout(ones, self.drop_rate, self.training)

    def kl(self, rows: Tensor, lengthscale: Lengthscale) -> Tensor:
        """(l²/2p) |W|² (ledger E30); constants in W are left out."""
        length = checked_lengthscale(lengthscale)
        return dropped_kl(rows, self.keep_prob, length)

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return f"drop_rate={self.drop_rate:g}, {super().extra_repr()}"


class BernoulliLayer(InputNoisyLayer):
    """A layer whose inputs are dropped."""

    noise: BernoulliNoise

    @property
    def drop_rate(self) -> float:
        """The probability that an input is zero."""
        return self.noise.drop_rate


@dataclass(frozen=True)
class Bernoulli(Noise):
    """Dropout on the inputs of a layer, as in papers 000 and 001.

    ``kl`` is (l²/2p) |W|² + (l²/2) |b|², p = 1 - f (ledger E30): the KL of paper 000's
    proposition 1 as s -> 0, without its constants. It is a weight decay, the one that
    ``caveat.noise.weight_decay_groups`` gives.

    Parameters
    ----------
    drop_rate : float
        f, the probability that a unit is zero.
    spatial : bool
        Drop a unit at all positions of a row at once: channels of images, features of
        a sequence. Only then is a mask on units the same as one on weights.
    on_biases : bool
        Drop biases as well, each by itself (paper 000, section 4.1); the last term of
        ``kl`` is then divided by p, too.

    Examples
    --------
    >>> from torch import nn
    >>> layer = Bernoulli(drop_rate=0.5).wrap(nn.Linear(3, 2))
    >>> y = layer.eval()(torch.ones(4, 3))  # in evaluation mode the plain layer
    >>> torch.equal(y, layer.layer(torch.ones(4, 3)))
    True
    """

    drop_rate: float = 0.1
    spatial: bool = False
    on_biases: bool = False

    def __post_init__(self) -> None:
        _rate(self.drop_rate)

    def _wrapped(self, layer: WeightLayer) -> BernoulliLayer:
        axis = unit_axis(layer)
        noise = BernoulliNoise(self.drop_rate, spatial=self.spatial, axis=axis)
        on_biases = BernoulliNoise(self.drop_rate) if self.on_biases else None
        return BernoulliLayer(layer, noise, on_biases)


def _rate(value: float) -> float:
    return validation.drop_rate(value, where="Bernoulli noise")
