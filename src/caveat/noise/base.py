"""What all noise shares: a family describes it, a module carries it.

A family (:class:`Noise`) is a small frozen value; ``family.wrap(layer)`` gives a module
that computes the layer with that noise. Such a module

- draws with torch's ordinary random operations in training mode, and in evaluation
  mode gives what the bare layer gives: the stored weights are the mean of q(w);
- has the layer's parameters under ``layer.`` and those of the noise beside them;
- has ``kl(lengthscale)``, the KL divergence of q(w) from the prior N(0, 1/l²),
  computed when asked and never stored.
"""

from abc import ABC, abstractmethod
from typing import cast

from torch import Tensor, nn

from caveat import _validation as validation
from caveat.noise.layers import (
    WeightLayer,
    require_plain_forward,
    run_with,
    weight_layer,
)
from caveat.theory import divergence
from caveat.theory.divergence import Lengthscale


class NoisyModule(nn.Module, ABC):
    """A module whose weights have a distribution q(w)."""

    @abstractmethod
    def kl(self, lengthscale: Lengthscale) -> Tensor:
        """KL divergence of q(w) from the prior N(0, 1/l²), in nats, differentiable.

        Each family says which constants it leaves out. A tensor as length-scale is not
        checked, so that it can be mapped over.
        """

    def keep_probs(self) -> dict[Tensor, float]:
        """Keep probability of each parameter, if the KL is a weight decay.

        Empty if it is more than that: then only :meth:`kl` will do.
        """
        return {}


class NoisyLayer(NoisyModule):
    """A linear or convolution layer with noise.

    Attributes
    ----------
    layer : nn.Module
        The bare layer.
    """

    layer: WeightLayer

    def __init__(self, layer: WeightLayer) -> None:
        super().__init__()
        self.layer = layer

    @property
    def weight(self) -> nn.Parameter:
        """The mean of the weights."""
        return cast(nn.Parameter, self.layer.weight)

    @property
    def bias(self) -> nn.Parameter | None:
        """The mean of the biases."""
        return cast(nn.Parameter | None, self.layer.bias)

    def _decays(self, weights: float, biases: float) -> dict[Tensor, float]:
        keeps: dict[Tensor, float] = {self.weight: weights}
        return keeps if self.bias is None else keeps | {self.bias: biases}


class WeightNoisyLayer(NoisyLayer):
    """A layer whose weights are drawn: once a call, for all rows of the batch."""

    def __init__(self, layer: WeightLayer) -> None:
        require_plain_forward(layer)
        super().__init__(layer)

    @abstractmethod
    def sample(self) -> tuple[Tensor, Tensor | None]:
        """Draw a weight and a bias."""

    def forward(self, x: Tensor) -> Tensor:
        """The layer with drawn weights, or with their mean in evaluation mode."""
        if not self.training:
            return self.layer(x)
        return run_with(self.layer, x, *self.sample())


class Noise(ABC):
    """A family of noise: what is drawn, before it is put on a layer."""

    def wrap(self, layer: nn.Module) -> NoisyLayer:
        """A module that computes ``layer`` with this noise.

        Parameters
        ----------
        layer : nn.Linear, nn.Conv1d, nn.Conv2d or nn.Conv3d
            Becomes part of the new module, which holds the same parameters; wrap a
            copy to keep it apart.

        Returns
        -------
        NoisyLayer
            In the mode, and on the device, of ``layer``.
        """
        layer = weight_layer(layer)
        noisy = self._wrapped(layer)
        noisy.train(layer.training)
        return noisy

    @abstractmethod
    def _wrapped(self, layer: WeightLayer) -> NoisyLayer: ...


def checked_lengthscale(value: Lengthscale) -> Lengthscale:
    """A number above 0; a tensor is taken as it is, so that it may be mapped over."""
    if isinstance(value, Tensor):
        return value
    return validation.lengthscale(value)


def dropped_kl(weight: Tensor, keep_prob: float, length: Lengthscale) -> Tensor:
    """KL of weights of which the share p is kept, up to a constant (ledger E30)."""
    return divergence.dropped(weight.square().sum(), keep_prob, length)


def bias_kl(layer: WeightLayer, keep_prob: float, length: Lengthscale) -> Tensor | int:
    """KL of biases that are not drawn, or dropped; 0 if there are none."""
    return 0 if layer.bias is None else dropped_kl(layer.bias, keep_prob, length)
