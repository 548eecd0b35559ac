"""Max pooling without overlap as the maximum of shifted views: same numbers, faster.

Nothing is random here. But torch's kernel for the usual memory order looks at one
number at a time and also writes down where it found each maximum; elementwise maxima
over strided views are several times faster, and pooling is a good part of a small
convolutional net. Noisy inputs keep the operation, for the rewrites to see.
"""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, is_fake
from caveat.sampling.passes import Pass

_aten = torch.ops.aten
_MOST_VIEWS = 9
_FEW = 1 << 15  # numbers, for which one operation is faster than several


def _max_pool2d(
    run: Pass,
    func: OpOverload,
    x: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    *rest: Any,
) -> Tensor:
    height, width = kernel_size[0], kernel_size[-1]
    covers = tuple(stride) in ((), (height, width))
    if rest or not covers or not _is_large_and_plain(x) or run.recorder.is_noisy(x):
        return run.recorder.run(func, x, kernel_size, stride, *rest)
    if height * width > _MOST_VIEWS or x.shape[-2] < height or x.shape[-1] < width:
        return run.recorder.run(func, x, kernel_size, stride, *rest)
    bottom = x.shape[-2] // height * height
    right = x.shape[-1] // width * width
    with run.recorder:
        views = [
            x[..., i:bottom:height, j:right:width]
            for i, j in product(range(height), range(width))
        ]
        result = views[0].clone(memory_format=torch.contiguous_format)
        for view in views[1:]:
            torch.maximum(result, view, out=result)
    return result


def _is_large_and_plain(x: Tensor) -> bool:
    if is_fake(type(x)):  # a graph is to say what the model does
        return False
    large = x.numel() > _FEW
    plain = x.device.type == "cpu" and x.is_floating_point() and x.is_contiguous()
    return large and plain


RULES: dict[OpOverload, Callable[..., Any]] = {_aten.max_pool2d.default: _max_pool2d}
