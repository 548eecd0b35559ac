"""Dropout on clean features, then a small linear layer: all draws in one product.

The usual head. Its input does not depend on noise, so it can be folded into the weight,
once for all draws, and all masks be applied in one matrix product. Where there are more
rows or outputs than draws, the masks are folded into copies of the weight instead (or
of the input, if that is the smaller). The result then looks to the tape like a noise of
its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from caveat._strata import BLOCK
from caveat.sampling.noise import NoiseSpec
from caveat.sampling.rewriting.uses import (
    Uses,
    linear_arguments,
    masked,
    over_last_axis,
)
from caveat.sampling.tape import Tape

_NARROW = 16  # columns of a product
_MAX_RESULT = 1 << 16  # numbers a draw; beyond, one draw at a time is faster


@dataclass(frozen=True)
class HeadSpec:
    """``linear(x * mask, weight, bias)`` for many draws at a time."""

    mask: NoiseSpec
    x: int  # the constant of shape (*rows, features)
    weight: int  # the constant of shape (outputs, features)
    bias: int | None
    numel: int  # per draw: the result, and what the mask is folded into

    @property
    def reads(self) -> tuple[int, ...]:
        """Features, weight and bias."""
        numbers = (self.x, self.weight, self.bias)
        return tuple(n for n in numbers if n is not None)

    def stream(self, seed: int) -> Callable[[range], Tensor]:
        """:meth:`fixed` under a seed."""
        return partial(self.fixed, seed)

    def fixed(self, seed: int, draws: range) -> Tensor:
        """The masks, of shape (draws, features)."""
        return self.mask.sample(seed, draws).view(len(draws), -1)

    def finished(self, drawn: Tensor, constants: dict[int, Tensor]) -> Tensor:
        """The outputs for these masks, of shape (draws, *rows, outputs)."""
        masks = drawn
        features, weight = constants[self.x], constants[self.weight]
        bias = None if self.bias is None else constants[self.bias]
        x = features.reshape(-1, features.shape[-1])
        shape = (len(masks), *features.shape[:-1], weight.shape[0])
        if max(len(x), len(weight)) < len(masks):
            many = len(x) > 1
            products = (x.unsqueeze(1) * weight).flatten(0, 1) if many else x * weight
            if len(products) <= _NARROW:  # twice as fast with the draws last
                out = torch.mm(products, masks.t()).t().view(shape)
            else:
                out = torch.mm(masks, products.t()).view(shape)
            return out if bias is None else out.add_(bias)
        masks = masks.unsqueeze(1)
        if len(x) <= len(weight):
            return torch.nn.functional.linear(x * masks, weight, bias).view(shape)
        weights = (weight * masks).flatten(0, 1)  # shape: (draws * outputs, features)
        out = torch.mm(x, weights.t()).view(len(x), len(masks), -1)
        if bias is not None:
            out += bias
        return out.transpose(0, 1).reshape(shape)


def hoist_small_heads(tape: Tape) -> None:
    """The same where the input is folded into the weight, if draws are many."""
    hoist_heads(tape, most=BLOCK)


def hoist_heads(tape: Tape, *, most: int | None = None) -> None:
    """Replace such heads by a :class:`HeadSpec`; of at most so many rows or outputs."""
    uses = Uses(tape)
    for op in tape.ops:
        found = masked(op, tape)
        if (
            found is None
            or found[0] not in tape.constants
            or not over_last_axis(found[2])
        ):
            continue
        layer = uses.only_consumer(op.result)
        linear = None if layer is None else linear_arguments(layer, tape)
        if layer is None or linear is None or linear[0] != op.result:
            continue
        _, weight, bias = linear
        rows, outputs, numel = _sizes(tape.constants[found[0]], tape.constants[weight])
        if numel <= _MAX_RESULT and (most is None or max(rows, outputs) < most):
            head = HeadSpec(found[2], found[0], weight, bias, numel)
            tape.noises[layer.result] = head
            layer.results = (None,)  # nobody needs the operation itself any more


def _sizes(x: Tensor, weight: Tensor) -> tuple[int, int, int]:
    """Rows, outputs, and numbers that a draw holds."""
    rows, features, outputs = x.numel() // x.shape[-1], x.shape[-1], len(weight)
    return rows, outputs, rows * outputs + min(rows, outputs) * features
