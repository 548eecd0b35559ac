"""What must be seen above the dispatcher: flags given as arguments, and ways out.

A function mode sees the calls of the Python API before torch breaks them down. It

- turns on dropout whose flag is an argument (``F.multi_head_attention_forward``), and
  keeps batch statistics off, whatever the modules' flags say;
- notices noisy values on their way out of torch (``.numpy()``, ``.tolist()``), which
  no dispatch mode can see;
- notices autograd in the middle of a forward, which cannot run below autograd;
- keeps the fused paths of ``nn.TransformerEncoder`` off by being there at all.

``above_autograd`` is for passes that autograd follows (:func:`caveat.stochastic`):
dropout in evaluation mode never reaches the dispatcher, so its flag is set here, too.
"""

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from caveat._torch import make_dual, set_grad_enabled
from caveat.sampling.higher_order import in_python
from caveat.sampling.passes import Pass
from caveat.sampling.rules.attention import attention
from caveat.sampling.rules.recurrent import (
    drop_between_layers,
    drops_between_layers,
    layer_by_layer,
)


class AutogradInside(BaseException):
    """The model uses gradients: its passes must run above autograd.

    Not an Exception, so that no ``except Exception`` of a model swallows it.

    Attributes
    ----------
    off : bool
        Whether it relies on gradients that its caller turned on, and they were off.
    """

    def __init__(self, *, off: bool = False) -> None:
        super().__init__()
        self.off = off


_DROPOUTS = frozenset(
    (
        F.dropout,
        F.dropout1d,
        F.dropout2d,
        F.dropout3d,
        F.alpha_dropout,
        F.feature_alpha_dropout,
        F.rrelu,
        torch.rrelu,
        torch.rrelu_,
        F.multi_head_attention_forward,
    )
)
_NO_RATE = frozenset(
    (F.rrelu, torch.rrelu, torch.rrelu_, F.multi_head_attention_forward)
)
_FUSED_DROPOUTS = frozenset(
    getattr(torch, name + suffix)
    for name in ("dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout")
    for suffix in ("", "_")
)
_RECURRENT = frozenset((torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu))
_WAYS_OUT = frozenset(
    (
        Tensor.numpy,
        Tensor.tolist,
        Tensor.__array__,
        Tensor.__deepcopy__,
        Tensor.__dlpack__,
        Tensor.__repr__,
        Tensor.data_ptr,
        Tensor.untyped_storage,
        Tensor.storage,
    )
)


class Guard(TorchFunctionMode):
    """See the module's docstring."""

    def __init__(self, run: Pass, *, above_autograd: bool, plain: bool) -> None:
        super().__init__()
        self._pass = run
        self._above_autograd = above_autograd
        self._plain = plain

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _WAYS_OUT:
            self._notice_way_out(func, args)
        elif func is set_grad_enabled:
            self._notice_autograd(args)
        elif func in (torch.autograd.grad, Tensor.backward):
            self._notice_differentiation(args, kwargs)
        elif func is make_dual and not self._above_autograd:
            raise AutogradInside
        elif func in (F.batch_norm, F.instance_norm):
            args, kwargs = _running_statistics(func, args, kwargs)
        elif (seen := in_python(func)) is not None:
            with self:  # autograd and we follow what is inside
                return seen(*args, **kwargs)
        elif not self._plain:
            return self._switched_on(func, args, kwargs)
        return func(*args, **kwargs)

    def _notice_way_out(self, func: Any, args: Any) -> None:
        if args:
            self._pass.recorder.way_out(func.__name__, args[0])

    def _notice_autograd(self, args: Any) -> None:
        if args[0] and not self._above_autograd:
            raise AutogradInside

    def _notice_differentiation(self, args: Any, kwargs: dict[str, Any]) -> None:
        if not self._above_autograd:
            raise AutogradInside
        outputs = args[0] if args else kwargs.get("outputs", ())
        outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        if not torch.is_grad_enabled() and not any(t.requires_grad for t in outputs):
            raise AutogradInside(off=True)

    def _switched_on(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if func is F.multi_head_attention_forward:
            return _with_flag(func, args, kwargs, "training", True)
        if self._above_autograd:
            return self._switched_on_above_autograd(func, args, kwargs)
        return func(*args, **kwargs)

    def _switched_on_above_autograd(
        self, func: Any, args: Any, kwargs: dict[str, Any]
    ) -> Any:
        if func in _DROPOUTS:
            self._count_empty(func, args, kwargs)
            return _with_flag(func, args, kwargs, "training", True)
        if func in _FUSED_DROPOUTS:
            self._count_empty(func, args, kwargs)
            arguments = _bind(func, args, kwargs)
            return func(arguments["input"], arguments["p"], True)
        if func in _RECURRENT and drops_between_layers(args):
            drop = partial(drop_between_layers, self._pass)
            return layer_by_layer(func, args, drop)
        if func is F.scaled_dot_product_attention:
            return self._attention(func, args, kwargs)
        return func(*args, **kwargs)

    def _count_empty(self, func: Any, args: Any, kwargs: dict[str, Any]) -> None:
        """Count dropout of nothing as below autograd: it must not shift the names."""
        bound = _bind(func, args, kwargs)
        tensor, rate = bound.get("input"), bound.get("p", 0.5)
        if func not in _NO_RATE and isinstance(tensor, Tensor) and not tensor.numel():
            self._pass.mask("dropout", rate, tensor, fires=True)

    def _attention(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        bound = _bind(func, args, kwargs)
        rate = bound.pop("dropout_p", 0.0)
        if rate == 0.0:
            return func(*args, **kwargs)
        return attention(
            bound.pop("query"),
            bound.pop("key"),
            bound.pop("value"),
            bound.pop("attn_mask", None),
            bound.pop("is_causal", False),
            drop=lambda weights: torch.dropout(weights, rate, True),
            look_at_mask=False,
            **bound,
        )


def _with_flag(
    func: Callable[..., Any], args: Any, kwargs: Any, name: str, value: bool
) -> Any:
    bound = _bind(func, args, kwargs)
    bound[name] = value
    return func(**bound)


def _running_statistics(func: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Batch and instance norm use what they learned in training, if they have it."""
    bound = _bind(func, args, kwargs)
    if bound.get("running_mean") is not None:
        bound["training" if func is F.batch_norm else "use_input_stats"] = False
    return (), bound


_LEAKY = ("input", "lower", "upper", "training")
_ATTENTION = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


def _bind(func: Any, args: Any, kwargs: Any) -> dict[str, Any]:
    names = _builtin_names(func) or _names(func)
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _builtin_names(func: Any) -> tuple[str, ...] | None:
    if func is F.scaled_dot_product_attention:
        return _ATTENTION
    if func in (torch.rrelu, torch.rrelu_):
        return _LEAKY
    return ("input", "p", "train") if func in _FUSED_DROPOUTS else None


@cache
def _names(func: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(func).parameters)
