"""Dropout on clean features, then a small linear layer: all draws in one product.

The usual head. Its input does not depend on noise, so the masks of many draws can be
folded into copies of the weight (or of the input, if that is the smaller) and applied
in one matrix product. The result then looks to the tape like a noise of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from caveat.sampling.noise import NoiseSpec
from caveat.sampling.rewriting.uses import (
    Uses,
    linear_arguments,
    masked,
    over_last_axis,
)
from caveat.sampling.tape import Tape

_MAX_RESULT = 1 << 16  # numbers a draw; beyond, one draw at a time is faster


@dataclass(frozen=True)
class HeadSpec:
    """``linear(x * mask, weight, bias)`` for many draws at a time."""

    mask: NoiseSpec
    x: Tensor  # shape: (*rows, features)
    weight: Tensor  # shape: (outputs, features)
    bias: Tensor | None

    @property
    def numel(self) -> int:
        """Numbers per draw: the result, and what the mask is folded into."""
        rows, features = self.x.numel() // self.x.shape[-1], self.x.shape[-1]
        outputs = self.weight.shape[0]
        return rows * outputs + min(rows, outputs) * features

    def stream(self, seed: int) -> Callable[[range], Tensor]:
        """:meth:`sample` under a seed, as sites of noise have it."""
        return partial(self.sample, seed)

    def sample(self, seed: int, draws: range) -> Tensor:
        """The outputs of these draws, of shape (draws, *rows, outputs)."""
        masks = self.mask.sample(seed, draws).view(len(draws), 1, -1)
        x = self.x.reshape(-1, self.x.shape[-1])
        shape = (len(draws), *self.x.shape[:-1], self.weight.shape[0])
        if len(x) <= len(self.weight):
            return torch.nn.functional.linear(x * masks, self.weight, self.bias).view(
                shape
            )
        weights = (self.weight * masks).flatten(
            0, 1
        )  # shape: (draws * outputs, features)
        out = torch.mm(x, weights.t()).view(len(x), len(draws), -1)
        if self.bias is not None:
            out += self.bias
        return out.transpose(0, 1).reshape(shape)


def hoist_heads(tape: Tape) -> None:
    """Replace such heads by a :class:`HeadSpec`."""
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
        bias = None if linear[2] is None else tape.constants[linear[2]]
        x, weight = tape.constants[found[0]], tape.constants[linear[1]]
        head = HeadSpec(found[2], x, weight, bias)
        if head.numel <= _MAX_RESULT:
            tape.noises[layer.result] = head
            layer.results = (None,)  # nobody needs the operation itself any more
