"""Masks folded into the weights that follow them.

A mask over units times a linear layer is that layer with some columns of its weight
switched off; a mask over channels times a convolution likewise. The weight is nearly
always smaller than the activations of a batch.
"""

import math

import torch
from torch import Tensor

from caveat._torch import op_name
from caveat.sampling.rewriting.uses import (
    Uses,
    linear_arguments,
    masked,
    over_last_axis,
)
from caveat.sampling.tape import Op, Ref, Tape

_aten = torch.ops.aten


def fold_masks(tape: Tape) -> None:
    """Move masks from activations to weights where that is less work."""
    uses = Uses(tape)
    replaced: dict[int, list[Op]] = {}
    dropped: set[int] = set()
    for op in tape.ops:
        found = masked(op, tape)
        layer = uses.only_consumer(op.result) if found else None
        if found is None or layer is None:
            continue
        x, mask, spec = found
        activations = math.prod(tape.values[x].shape)
        linear = linear_arguments(layer, tape)
        shape: tuple[int, ...]
        if linear is not None and linear[0] == op.result and over_last_axis(spec):
            shape = (spec.shape[-1],)
        elif _is_plain_conv(layer, op.result, tape) and _over_channels(spec.shape):
            shape = (1, spec.shape[1], *[1] * (len(spec.shape) - 2))
        else:
            continue
        weight = layer.args[1].number
        if tape.constants[weight].numel() > activations:
            continue
        fold = _folded
        if linear is not None and linear[2] is not None and _is_matrix(tape, x):
            fold = _folded_with_bias
        replaced[id(layer)] = fold(tape, layer, x, weight, mask, shape)
        dropped.add(id(op))
    tape.ops = [
        new
        for op in tape.ops
        if id(op) not in dropped
        for new in replaced.get(id(op), [op])
    ]


def _folded(
    tape: Tape, layer: Op, x: int, weight: int, mask: int, shape: tuple[int, ...]
) -> list[Op]:
    value = tape.constants[weight]
    row = tape.new_number(shape, value.dtype)
    scaled = tape.new_number(tuple(value.shape), value.dtype)
    args = (Ref(x), Ref(scaled), *layer.args[2:])
    return [
        Op(_aten.view.default, (Ref(mask), shape), {}, (row,)),
        Op(_aten.mul.Tensor, (Ref(weight), Ref(row)), {}, (scaled,)),
        Op(layer.func, args, layer.kwargs, layer.results),
    ]


def _folded_with_bias(
    tape: Tape, layer: Op, x: int, weight: int, mask: int, shape: tuple[int, ...]
) -> list[Op]:
    """The bias as one more column: torch would first copy it to every row."""
    bias, value = layer.args[2], tape.constants[weight]
    one = tape.add_constant(value.new_ones(1), group=-1)
    x = tape.derive(_with_ones, Ref(x))
    weight = tape.derive(_with_column, Ref(weight), bias)
    wider_weight = tape.constants[weight]
    columns, dtype = wider_weight.shape[1], value.dtype
    units = tape.new_number(shape, dtype)
    row = tape.new_number((columns,), dtype)
    scaled = tape.new_number(tuple(wider_weight.shape), dtype)
    turned = tape.new_number(tuple(wider_weight.t().shape), dtype)
    return [
        Op(_aten.view.default, (Ref(mask), shape), {}, (units,)),
        Op(_aten.cat.default, ([Ref(units), Ref(one)],), {}, (row,)),
        Op(_aten.mul.Tensor, (Ref(weight), Ref(row)), {}, (scaled,)),
        Op(_aten.t.default, (Ref(scaled),), {}, (turned,)),
        Op(_aten.mm.default, (Ref(x), Ref(turned)), {}, layer.results),
    ]


def _with_ones(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_ones(len(x), 1)], 1)


def _with_column(weight: Tensor, bias: Tensor) -> Tensor:
    return torch.cat([weight, bias[:, None]], 1)


def _is_matrix(tape: Tape, number: int) -> bool:
    return number in tape.constants and tape.constants[number].dim() == 2


def _is_plain_conv(op: Op, x: int, tape: Tape) -> bool:
    """A convolution of value ``x`` without groups, with constant weights."""
    if op_name(op.func) not in ("conv1d", "conv2d", "conv3d"):
        return False
    groups = op.args[6] if len(op.args) > 6 else 1
    return op.args[0] == Ref(x) and op.args[1].number in tape.constants and groups == 1


def _over_channels(shape: tuple[int, ...]) -> bool:
    return len(shape) > 2 and math.prod(shape) == shape[1]
