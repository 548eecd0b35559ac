"""Convolutions in channels-last order, which CPUs run and pool much faster.

Only noisy convolutions matter here: clean ones run once. Given a weight in
channels-last order, a convolution returns its result in that order, and what follows
takes it over.
"""

import torch

from caveat.sampling.rewriting.uses import masked
from caveat.sampling.tape import Op, Ref, Tape

_aten = torch.ops.aten


def use_channels_last(tape: Tape) -> None:
    """Bring weights, constants and masks beside noisy convolutions into that order."""
    convolutions = [op for op in tape.ops if op.func is _aten.conv2d.default]
    if not convolutions or any(op.func is _aten.as_strided.default for op in tape.ops):
        return
    for op in convolutions:
        weight = op.args[1]
        if weight.number in tape.constants:
            op.args = (op.args[0], _converted(tape, weight), *op.args[2:])
    ops: list[Op] = []
    for op in tape.ops:
        if op.func is _aten.view.default:
            op.func = _aten.reshape.default
        if masked(op, tape) and len(tape.values[op.result].shape) == 4:
            ops += _convert_product(tape, op)
        ops.append(op)
    tape.ops = ops


def _converted(tape: Tape, ref: Ref) -> Ref:
    order = {"memory_format": torch.channels_last}
    return Ref(tape.derive(_aten.contiguous.default, ref, **order))


def _convert_product(tape: Tape, op: Op) -> list[Op]:
    """x * mask, with both in channels-last order."""
    x, mask = op.args
    if x.number in tape.constants:
        x = _converted(tape, x)
    value = tape.values[mask.number]
    if len(value.shape) != 4:
        return []
    turned = tape.new_number(value.shape, value.dtype)
    options = {"memory_format": torch.channels_last}
    op.args = (x, Ref(turned))
    return [Op(_aten.contiguous.default, (mask,), options, (turned,))]
