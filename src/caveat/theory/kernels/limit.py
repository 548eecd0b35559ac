"""From a torch network to the kernel that it approximates as it gets wide."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from torch import nn

from caveat import _validation as validation
from caveat.errors import ParameterError, ShapeError, UnsupportedModelError
from caveat.theory.chains import in_order
from caveat.theory.kernels.base import Nonlinearity
from caveat.theory.kernels.covariances import Array
from caveat.theory.kernels.naming import (
    NAMED,
    NonlinearityLike,
    as_nonlinearity,
    softplus,
    tanh_gelu,
)
from caveat.theory.kernels.network import Masks, NetworkKernel
from caveat.theory.kernels.piecewise import LeakyRelu
from caveat.theory.kernels.smooth import Smooth

_PLAIN: dict[type[nn.Module], Nonlinearity] = {
    nn.ReLU: NAMED["relu"],
    nn.Tanh: NAMED["tanh"],
    nn.Sigmoid: NAMED["sigmoid"],
    nn.SiLU: NAMED["silu"],
}
_KNOWN = "ReLU, LeakyReLU, Tanh, Sigmoid, GELU, SiLU, Softplus"

_NOT_AN_MLP = """{found} has no place in a plain network.
The limit of infinite width is known here for nn.Sequential (nested or not) of
nn.Linear, activations ({known}) and nn.Dropout.
Give other activations a name or a smooth function of arrays, as in
activations={{{kind}: "sin"}}; for other networks put a NetworkKernel together
by hand."""


def gp_of(
    model: nn.Module,
    *,
    lengthscale: float | None = None,
    weight_variance: float | None = None,
    bias_variance: float = 0.0,
    shared: bool = True,
    activations: Mapping[type[nn.Module], NonlinearityLike] | None = None,
) -> NetworkKernel:
    """The kernel of the Gaussian process that a network tends to as it gets wide.

    It is the prior covariance of one output of a network with random weights; the
    values of the model's weights play no role, nor do its widths. The scale of the
    weights is stated in one of two ways:

    - ``lengthscale`` l: the prior of papers 000 and 001, variance 1/l² of every
      weight and bias, with the output of each hidden layer divided by sqrt(K)
      (ledger E79). The inputs are not.
    - ``weight_variance`` and ``bias_variance``: of initial weights, variance
      weight_variance / fan-in, in the first layer, too. 1/3 for ``nn.Linear`` as torch
      initialises it (biases shrink with the width), 2 for He's initialisation.

    Parameters
    ----------
    model : nn.Module
        ``nn.Sequential`` of ``nn.Linear``, activations and ``nn.Dropout``. Not changed.
    lengthscale : float, optional
        l.
    weight_variance : float, optional
        s_w².
    bias_variance : float
        s_b², with ``weight_variance``. Layers without bias have none.
    shared : bool
        Whether all points of a pass see the same dropout mask.
    activations : mapping, optional
        {class of module: name, Nonlinearity or smooth function} for other modules.

    Returns
    -------
    NetworkKernel

    Examples
    --------
    >>> net = nn.Sequential(
    ...     nn.Linear(1, 50), nn.ReLU(), nn.Dropout(0.2), nn.Linear(50, 1)
    ... )
    >>> kernel = gp_of(net, lengthscale=0.5)
    >>> kernel.diag([[0.0], [1.0]])  # 4 + 4 q_xx / 2 / 0.8, q_xx = 4 + 4 x²
    array([14., 24.])
    """
    layers = _read(validation.module("model", model), activations or {})
    weights, biases = _scales(lengthscale, weight_variance, bias_variance)
    return NetworkKernel(
        tuple(layer.nonlinearity for layer in layers),
        weight_variance=weights,
        bias_variance=_present(biases, [layer.has_bias for layer in layers]),
        masks=Masks(tuple(layer.keep_prob for layer in layers[1:]), shared=shared),
        fan_in=lengthscale is None,
    )


@dataclass
class _Dense:
    """A linear layer as it is read: the dropout before it and what follows."""

    has_bias: bool
    keep_prob: float
    nonlinearity: Nonlinearity = field(default_factory=lambda: NAMED["identity"])
    is_active: bool = False


def _read(
    model: nn.Module, activations: Mapping[type[nn.Module], NonlinearityLike]
) -> list[_Dense]:
    """The linear layers of a chain, in order."""
    layers: list[_Dense] = []
    keep, width = 1.0, None
    for module in in_order(model):
        if isinstance(module, nn.Linear):
            _fits(module, width)
            layers.append(_Dense(module.bias is not None, keep))
            keep, width = 1.0, module.out_features
        elif isinstance(module, nn.Dropout):
            rate = validation.drop_rate(module.p, where=f"{module} of the model")
            if rate and not layers:
                raise UnsupportedModelError(
                    f"Dropout on the inputs ({module}) leaves no Gaussian process: the "
                    f"inputs stay finitely many. Pass the model without it, as in "
                    f"gp_of(model[1:], …)."
                )
            keep *= 1.0 - rate
        elif not isinstance(module, nn.Identity | nn.Flatten):
            _activate(layers, module, keep, activations)
    if not layers:
        raise UnsupportedModelError("The model has no nn.Linear, so it has no weights.")
    if keep < 1.0:
        raise UnsupportedModelError(
            "The output of the model is dropped, and no weights follow. Pass the model "
            "without its last nn.Dropout."
        )
    return layers


def _activate(
    layers: list[_Dense],
    module: nn.Module,
    keep: float,
    activations: Mapping[type[nn.Module], NonlinearityLike],
) -> None:
    """Put an activation behind the last linear layer."""
    sigma = _nonlinearity(module, activations)
    if not layers or layers[-1].is_active or keep < 1.0:
        raise UnsupportedModelError(
            f"An activation must follow directly upon nn.Linear, one upon each. Got "
            f"{module} elsewhere."
        )
    layers[-1].nonlinearity, layers[-1].is_active = sigma, True


def _nonlinearity(
    module: nn.Module, activations: Mapping[type[nn.Module], NonlinearityLike]
) -> Nonlinearity:
    kind = type(module)
    if kind in activations:
        return as_nonlinearity(activations[kind])
    if kind in _PLAIN:
        return _PLAIN[kind]
    if isinstance(module, nn.LeakyReLU):
        return LeakyRelu(module.negative_slope)
    if isinstance(module, nn.GELU):
        return Smooth(tanh_gelu) if module.approximate == "tanh" else NAMED["gelu"]
    if isinstance(module, nn.Softplus):
        return Smooth(partial(_scaled_softplus, beta=module.beta))
    raise UnsupportedModelError(
        _NOT_AN_MLP.format(found=kind.__name__, kind=kind.__name__, known=_KNOWN)
    )


def _scaled_softplus(z: Array, *, beta: float) -> Array:
    return softplus(beta * z) / beta


def _fits(module: nn.Linear, width: int | None) -> None:
    if width is not None and module.in_features != width:
        raise ShapeError(
            f"Each nn.Linear must take what the one before gives. Got {module} after "
            f"{width} units."
        )


def _scales(
    lengthscale: float | None, weight_variance: float | None, bias_variance: float
) -> tuple[float, float]:
    """s_w² and s_b² by one of the two conventions."""
    if (lengthscale is None) == (weight_variance is None):
        raise ParameterError(
            "Give either lengthscale, for the prior of papers 000 and 001, or "
            f"weight_variance, for fan-in scaled weights. Got {lengthscale} and "
            f"{weight_variance}."
        )
    if lengthscale is None or weight_variance is not None:
        return validation.positive("weight_variance", weight_variance), bias_variance
    if bias_variance:
        raise ParameterError(
            f"With lengthscale, biases have the variance 1/l² of the weights. Got "
            f"bias_variance={bias_variance}; leave it out."
        )
    # E79: s_w² = s_b² = 1 / l²
    variance = validation.lengthscale(lengthscale) ** -2
    return variance, variance


def _present(variance: float, has_bias: list[bool]) -> float | tuple[float, ...]:
    """One number if all layers have a bias or none has, else one per layer."""
    if all(has_bias):
        return variance
    if not any(has_bias):
        return 0.0
    return tuple(float(variance * has) for has in np.asarray(has_bias))
