"""Pooling: averages are linear; the largest of several is taken two at a time."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from caveat.sampling.closed_form.activations import Transformed, largest_of_two
from caveat.sampling.closed_form.beliefs import Belief, NotSupportedError

_aten = torch.ops.aten
_FAR = 40.0  # standard deviations


def _average(
    func: Callable[..., Tensor],
    x: Belief,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Any = 0,
    *options: Any,
) -> Belief:
    if any(options[:1]) or (len(options) > 1 and not options[1]) or any(options[2:3]):
        raise NotSupportedError(
            "average pooling with ceil_mode, count_include_pad=False or a divisor"
        )
    size = torch.Size(kernel).numel()
    # E87 with all weights 1/n: the variance of an average is the average one over n
    return x.spread_by(
        lambda mean: func(mean, list(kernel), list(stride), padding),
        lambda spread: func(spread, list(kernel), list(stride), padding) / size,
        "average pooling",
    )


def _adaptive_average(
    func: Callable[..., Tensor], x: Belief, output_size: Sequence[int]
) -> Belief:
    spatial = x.mean.shape[-len(output_size) :]
    if any(have % want for have, want in zip(spatial, output_size, strict=True)):
        raise NotSupportedError("adaptive pooling to windows of different sizes")
    size = torch.Size(spatial).numel() // torch.Size(output_size).numel()
    return x.spread_by(
        lambda mean: func(mean, output_size),
        lambda spread: func(spread, output_size) / size,
        "average pooling",
    )


def _largest(
    x: Belief,
    kernel: Sequence[int],
    stride: Sequence[int] = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Belief:
    sides = [*kernel] * (2 if len(kernel) == 1 else 1)
    if ceil_mode or len(sides) != 2:
        raise NotSupportedError("max pooling with ceil_mode, or not of images")
    steps = [*(stride or sides)]
    steps = steps * 2 if len(steps) == 1 else steps
    pads = _pair(padding)
    if _pair(dilation) != (1, 1):
        raise NotSupportedError("max pooling with dilation")
    return x.activated(partial(_largest_in_windows, sides, steps, pads))


def _largest_in_windows(
    sides: Sequence[int],
    steps: Sequence[int],
    pads: tuple[int, int],
    mean: Tensor,
    variance: Tensor,
) -> Transformed:
    """Moments of the largest element of each window; the slope is not known."""
    edge = (pads[1], pads[1], pads[0], pads[0])
    low = float((mean - _FAR * variance.sqrt()).min()) - 1.0  # is never the largest
    mean = F.pad(mean, edge, value=low) if any(pads) else mean
    variance = F.pad(variance, edge) if any(pads) else variance
    contenders = [
        (_shifted(mean, at, sides, steps), _shifted(variance, at, sides, steps))
        for at in range(sides[0] * sides[1])
    ]
    while len(contenders) > 1:
        pairs = zip(contenders[::2], contenders[1::2], strict=False)
        left = contenders[-1:] if len(contenders) % 2 else []
        contenders = [largest_of_two(*a, *b)[:2] for a, b in pairs] + left
    largest, spread = contenders[0]
    return Transformed(largest, spread, torch.full_like(largest, torch.nan))


def _shifted(
    images: Tensor, at: int, sides: Sequence[int], steps: Sequence[int]
) -> Tensor:
    """The element at place ``at`` of every window."""
    top, left = divmod(at, sides[1])
    height, width = (
        (size - side) // step
        for size, side, step in zip(images.shape[-2:], sides, steps, strict=True)
    )
    rows = slice(top, top + height * steps[0] + 1, steps[0])
    columns = slice(left, left + width * steps[1] + 1, steps[1])
    return images[..., rows, columns]


def _pair(value: Any) -> tuple[int, int]:
    both = (value, value) if isinstance(value, int) else (value[0], value[-1])
    return int(both[0]), int(both[1])


RULES: dict[Any, Callable[..., Belief]] = {
    _aten.max_pool2d.default: _largest,
    _aten.avg_pool1d.default: partial(_average, _aten.avg_pool1d.default),
    _aten.avg_pool2d.default: partial(_average, _aten.avg_pool2d.default),
    _aten.avg_pool3d.default: partial(_average, _aten.avg_pool3d.default),
    _aten.adaptive_avg_pool1d.default: partial(
        _adaptive_average, _aten.adaptive_avg_pool1d.default
    ),
    _aten.adaptive_avg_pool2d.default: partial(
        _adaptive_average, _aten.adaptive_avg_pool2d.default
    ),
    _aten.adaptive_avg_pool3d.default: partial(
        _adaptive_average, _aten.adaptive_avg_pool3d.default
    ),
}
