"""DropConnect: each weight is dropped by itself.

.. [Wan2013] L. Wan et al. Regularization of neural networks using DropConnect.
   ICML 2013.
"""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from caveat import _validation as validation
from caveat.noise.base import (
    Noise,
    WeightNoisyLayer,
    bias_kl,
    checked_lengthscale,
    dropped_kl,
)
from caveat.noise.layers import WeightLayer
from caveat.theory.divergence import Lengthscale


class DropConnectLayer(WeightNoisyLayer):
    """A layer whose single weights are dropped."""

    def __init__(self, layer: WeightLayer, drop_rate: float, on_biases: bool) -> None:
        super().__init__(layer)
        self.drop_rate = drop_rate
        self.on_biases = on_biases

    def sample(self) -> tuple[Tensor, Tensor | None]:
        """Draw a mask for the weights, and maybe one for the biases."""
        weight = F.dropout(self.weight, self.drop_rate)
        if self.bias is None or not self.on_biases:
            return weight, self.bias
        return weight, F.dropout(self.bias, self.drop_rate)

    def kl(self, lengthscale: Lengthscale) -> Tensor:
        """(l²/2p) |W|² + (l²/2) |b|² (ledger E30); constants are left out."""
        length = checked_lengthscale(lengthscale)
        weights = dropped_kl(self.weight, 1.0 - self.drop_rate, length)
        return weights + bias_kl(self.layer, self._bias_keep_prob(), length)

    def keep_probs(self) -> dict[Tensor, float]:
        """Keep probability of each parameter."""
        return self._decays(1.0 - self.drop_rate, self._bias_keep_prob())

    def extra_repr(self) -> str:
        """Settings as they are printed."""
        return f"drop_rate={self.drop_rate:g}, on_biases={self.on_biases}"

    def _bias_keep_prob(self) -> float:
        return 1.0 - self.drop_rate if self.on_biases else 1.0


@dataclass(frozen=True)
class DropConnect(Noise):
    """Each weight of a layer is zero with probability f, else divided by 1 - f.

    One mask serves all rows of a call [Wan2013]_. A weight is then a row of its own in
    the sense of paper 000, so ``kl`` is that of :class:`Bernoulli`.

    Parameters
    ----------
    drop_rate : float
        f, the probability that a weight is zero.
    on_biases : bool
        Drop biases as well.

    Examples
    --------
    >>> from torch import nn
    >>> layer = DropConnect(drop_rate=0.5).wrap(nn.Linear(3, 2))
    >>> weight, bias = layer.sample()
    >>> bool(((weight == 0) | (weight == 2 * layer.weight)).all())
    True
    """

    drop_rate: float = 0.1
    on_biases: bool = False

    def __post_init__(self) -> None:
        validation.drop_rate(self.drop_rate, where="DropConnect")

    def _wrapped(self, layer: WeightLayer) -> DropConnectLayer:
        return DropConnectLayer(layer, float(self.drop_rate), self.on_biases)
