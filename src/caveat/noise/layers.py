"""Weight layers: which weights a unit feeds, and running a layer with other weights.

A *row* is all the weights that one input unit (or channel) feeds, as in papers 000 and
001: what is lost when the unit is dropped. Torch stores the rows of a linear layer as
the columns of ``weight``; those of a grouped convolution lie in one group only.
"""

from typing import Any, TypeAlias

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin

from caveat import _validation as validation
from caveat.errors import UnsupportedModelError

WeightLayer: TypeAlias = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d

WEIGHT_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)

_UNSUPPORTED = """Noise can be put on nn.Linear, nn.Conv1d, nn.Conv2d and nn.Conv3d.
Got {name}. Write its noise in the forward pass with caveat.noise.BernoulliNoise, or use
caveat.noise.LSTM or caveat.noise.GRU for a recurrent net."""

_LAZY = """{name} has no weights yet. Run the model once, then put noise on it."""

_OWN_FORWARD = """{name} computes something of its own, so it cannot be run with drawn
weights. Use noise on its inputs: Bernoulli, Gaussian or Concrete."""


def weight_layer(layer: Any) -> WeightLayer:
    """A layer that noise can be put on."""
    module = validation.module("layer", layer)
    if not isinstance(module, WEIGHT_LAYERS):
        raise UnsupportedModelError(_UNSUPPORTED.format(name=type(module).__name__))
    if isinstance(module, LazyModuleMixin) and module.has_uninitialized_params():
        raise UnsupportedModelError(_LAZY.format(name=type(module).__name__))
    return module


def require_plain_forward(layer: WeightLayer) -> None:
    """The layer must compute what :func:`run_with` does: refuse other subclasses."""
    if not any(type(layer).forward is kind.forward for kind in WEIGHT_LAYERS):
        raise UnsupportedModelError(_OWN_FORWARD.format(name=type(layer).__name__))


def run_with(
    layer: WeightLayer, x: Tensor, weight: Tensor, bias: Tensor | None
) -> Tensor:
    """What ``layer`` gives for ``x`` with this weight and bias in place of its own."""
    if isinstance(layer, nn.Linear):
        return F.linear(x, weight, bias)
    return layer._conv_forward(x, weight, bias)


def unit_axis(layer: WeightLayer) -> int:
    """The axis of units in inputs and outputs, from the end: with a batch or not."""
    return -1 if isinstance(layer, nn.Linear) else 1 - layer.weight.dim()


def rows(layer: WeightLayer, weight: Tensor) -> Tensor:
    """``weight`` as rows, the weights of a unit last; extra axes may stand in front.

    Shape (..., *weight.shape) to (..., units, weights of a unit).
    """
    groups = _groups(layer)
    lead = weight.shape[: weight.dim() - layer.weight.dim()]
    grouped = weight.reshape(*lead, groups, -1, layer.weight.shape[1], _area(layer))
    return grouped.transpose(-3, -2).reshape(*lead, n_rows(layer), -1)


def along_rows(layer: WeightLayer, values: Tensor) -> Tensor:
    """One value per row, laid out so that it multiplies ``layer.weight``.

    Shape (..., units) to (..., outputs or 1, units of a group, 1, …).
    """
    lead, groups = values.shape[:-1], _groups(layer)
    flat = [1] * (layer.weight.dim() - 2)
    if groups == 1:
        return values.reshape(*lead, 1, -1, *flat)
    each = values.reshape(*lead, groups, 1, -1)
    each = each.expand(*lead, groups, layer.weight.shape[0] // groups, -1)
    return each.reshape(*lead, layer.weight.shape[0], -1, *flat)


def n_rows(layer: WeightLayer) -> int:
    """How many units feed the layer."""
    return layer.weight.shape[1] * _groups(layer)


def _groups(layer: WeightLayer) -> int:
    return 1 if isinstance(layer, nn.Linear) else layer.groups


def _area(layer: WeightLayer) -> int:
    """Weights of one unit to one output: the size of a kernel."""
    return layer.weight[0, 0].numel()
