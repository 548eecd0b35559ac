"""Small convolutions of one row by torch's own kernel instead of oneDNN's.

Nothing is random here. For kernels above 3 x 3 torch asks oneDNN, which prepares itself
anew at each call: in a small net with one row that takes longer than the arithmetic. Of
smaller kernels and more rows torch decides well itself. Noisy inputs keep the
operation, for the rewrites to see.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, is_fake
from caveat.sampling.passes import Pass

_aten = torch.ops.aten
_OWN = 3  # height or width of kernels for which torch takes its own
_LITTLE = 2e6  # multiplications that take less time than to prepare for them


def _conv2d(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Sequence[int] = (1, 1),
    padding: Sequence[int] = (0, 0),
    *rest: Any,
    **named: Any,
) -> Tensor:
    recorder = run.recorder
    noisy = any(recorder.is_noisy(t) for t in (x, weight, bias) if t is not None)
    if noisy or rest or named or not _is_small_and_plain(x, weight, stride, padding):
        return recorder.run(func, x, weight, bias, stride, padding, *rest, **named)
    kernel = list(weight.shape[2:])
    return recorder.run(
        _aten.thnn_conv2d.default, x, weight, kernel, bias, stride, padding
    )


def _is_small_and_plain(
    x: Tensor, weight: Tensor, stride: Sequence[int], padding: Sequence[int]
) -> bool:
    if is_fake(type(x)):  # a graph is to say what the model does
        return False
    if x.ndim != 4 or len(x) != 1 or x.dtype != torch.float32 or not x.is_contiguous():
        return False
    kernel = weight.shape[2:]
    if x.device.type != "cpu" or min(kernel) <= _OWN or weight.shape[1] != x.shape[1]:
        return False
    steps = zip(x.shape[2:], kernel, stride, padding, strict=False)
    places = math.prod((n + 2 * p - k) // s + 1 for n, k, s, p in steps)
    return weight.numel() * places <= _LITTLE


RULES: dict[OpOverload, Callable[..., Any]] = {_aten.conv2d.default: _conv2d}
