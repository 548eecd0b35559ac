"""How each operation of a tape changes what is known of a value."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from caveat.sampling.closed_form import activations, pooling
from caveat.sampling.closed_form.beliefs import Belief, Independent, NotSupportedError
from caveat.sampling.endings import is_view

_aten = torch.ops.aten

Rule = Callable[..., Belief]


# ------------------------------------------------------------ arithmetic


def _mul(left: Any, right: Any) -> Belief:
    if isinstance(left, Belief) and isinstance(right, Belief):
        return _noise_last(left, right)
    belief, constant = (left, right) if isinstance(left, Belief) else (right, left)
    if _fits(constant, belief):
        return belief.scaled(constant)
    return _certain(constant).times(_as_noise(belief))


def _noise_last(left: Belief, right: Belief) -> Belief:
    """Either may be the noise: it is the one whose elements are known to be apart."""
    if not (isinstance(right, Independent) and right.apart):
        left, right = right, left
    return left.times(_as_noise(right))


def _as_noise(belief: Belief) -> Independent:
    if isinstance(belief, Independent) and belief.apart and belief.exact:
        return belief
    raise NotSupportedError("a product of two values that both depend on noise")


def _certain(constant: Tensor) -> Independent:
    nothing = torch.zeros_like(constant)
    return Independent(constant, frozenset(), True, nothing, apart=True)


def _fits(constant: Any, belief: Belief) -> bool:
    """Whether a product or sum with the constant keeps the shape of the belief."""
    if not isinstance(constant, Tensor):
        return True
    return torch.broadcast_shapes(constant.shape, belief.mean.shape) == tuple(
        belief.mean.shape
    )


def _div(value: Any, divisor: Any) -> Belief:
    if isinstance(divisor, Belief):
        raise NotSupportedError("a division by a value that depends on noise")
    if not isinstance(divisor, Tensor) and divisor == 0:
        raise NotSupportedError("a division by zero")
    return value.scaled(1.0 / divisor)


def _add(left: Any, right: Any, alpha: float = 1.0) -> Belief:
    if isinstance(left, Belief) and isinstance(right, Belief):
        raise NotSupportedError(
            "a sum of two values that depend on noise (a shortcut or residual)"
        )
    if isinstance(left, Belief):
        return left.shifted(right * alpha)
    return right.scaled(alpha).shifted(left)


def _sub(left: Any, right: Any, alpha: float = 1.0) -> Belief:
    return _add(left, right, alpha=-alpha)


def _rsub(right: Any, left: Any, alpha: float = 1.0) -> Belief:
    return _sub(left, right, alpha=alpha)


def _neg(value: Belief) -> Belief:
    return value.scaled(-1.0)


def _view(func: Callable[..., Tensor], value: Any, *args: Any, **kw: Any) -> Belief:
    if not isinstance(value, Belief):
        raise NotSupportedError("a write of noise into a constant")
    return value.reshaped(lambda tensor: func(tensor, *args, **kw))


# ------------------------------------------------------------ layers


def _linear(x: Any, weight: Any, bias: Any = None) -> Belief:
    if isinstance(weight, Belief) or isinstance(bias, Belief):
        raise NotSupportedError("a linear layer whose weights are drawn")
    return x.linear(weight, bias)


def _convolution(
    func: Callable[..., Tensor], x: Any, weight: Any, bias: Any = None, *options: Any
) -> Belief:
    if isinstance(weight, Belief) or isinstance(bias, Belief):
        raise NotSupportedError("a convolution whose weights are drawn")
    # E87: E = W m + b,  Var = W² v, as for a linear layer
    return x.spread_by(
        lambda mean: func(mean, weight, bias, *options),
        lambda spread: func(spread, weight.square(), None, *options),
        "a convolution",
    )


def _batch_norm(
    x: Belief,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor | None,
    variance: Tensor | None,
    training: bool,
    *options: Any,
) -> Belief:
    if training or mean is None or variance is None:
        raise NotSupportedError("batch normalisation by the statistics of the batch")
    shape = (1, -1, *[1] * (x.mean.dim() - 2))
    factor = (variance + options[1]).rsqrt()
    factor = factor if weight is None else factor * weight
    term = -mean * factor if bias is None else bias - mean * factor
    return x.scaled(factor.view(shape)).shifted(term.view(shape))


def _activation(function: Callable[..., Any], x: Belief, *args: Any) -> Belief:
    return x.activated(function, *args)


LAYERS: dict[Any, Rule] = {
    _aten.linear.default: _linear,
    _aten.conv1d.default: partial(_convolution, _aten.conv1d.default),
    _aten.conv2d.default: partial(_convolution, _aten.conv2d.default),
    _aten.conv3d.default: partial(_convolution, _aten.conv3d.default),
    _aten.batch_norm.default: _batch_norm,
    _aten.relu.default: partial(_activation, activations.relu),
    _aten.leaky_relu.default: partial(_activation, activations.leaky_relu),
    _aten.erf.default: partial(_activation, activations.erf),
    _aten.tanh.default: partial(_activation, activations.tanh),
    _aten.sigmoid.default: partial(_activation, activations.sigmoid),
    **pooling.RULES,
}
"""Operations that see elements together, or bend them."""

ARITHMETIC: dict[Any, Rule] = {
    _aten.mul.Tensor: _mul,
    _aten.mul.Scalar: _mul,
    _aten.div.Tensor: _div,
    _aten.div.Scalar: _div,
    _aten.add.Tensor: _add,
    _aten.add.Scalar: _add,
    _aten.sub.Tensor: _sub,
    _aten.sub.Scalar: _sub,
    _aten.rsub.Tensor: _rsub,
    _aten.rsub.Scalar: _rsub,
    _aten.neg.default: _neg,
}
"""Operations that also make noise out of noise, such as 1 + sd * N(0, 1)."""


def rule_of(func: Any) -> Rule | None:
    """The rule of an operation, or None."""
    found = LAYERS.get(func) or ARITHMETIC.get(func)
    return partial(_view, func) if found is None and is_view(func) else found


SUPPORTED = (
    "linear and convolution layers, ReLU, leaky ReLU, tanh, sigmoid, erf, max and "
    "average pooling, batch normalisation, sums and products with constants, and "
    "changes of shape"
)
