"""Dropped units left out of both matrix products beside them.

In  linear → elementwise → mask → linear  a dropped unit is computed in vain and then
multiplied by zero. With one mask for all rows, the unit can be left out: its row of the
first weight and its column of the second. At drop rate f a hidden-to-hidden product
shrinks to (1-f)² of its size.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from caveat.sampling.rewriting.in_place import ELEMENTWISE
from caveat.sampling.rewriting.uses import (
    Uses,
    linear_arguments,
    masked,
    over_last_axis,
)
from caveat.sampling.tape import Op, Ref, Tape

_aten = torch.ops.aten

_MIN_RATE = 0.08  # below, gathering weights costs more than it saves
_MIN_WEIGHT = 1 << 14


def kept_units(mask: Tensor) -> Tensor:
    """Numbers of the units that a mask keeps."""
    return mask.flatten().nonzero().flatten()


@dataclass
class _Sliced:
    """Which of its outputs and inputs a linear layer keeps, as values of indices."""

    outputs: int | None = None
    inputs: int | None = None


def slice_units(tape: Tape) -> None:
    """Leave dropped units out where the pattern stands."""
    uses = Uses(tape)
    sliced: dict[int, _Sliced] = {}  # by id of the linear operation
    before: dict[int, list[Op]] = {}  # operations to add before one, by its id
    skipped: dict[int, int] = {}  # result of a mask's product -> its input
    for op in tape.ops:
        found = _sliceable(op, tape, uses)
        if found is None:
            continue
        first, second, scale = found
        x, mask, _ = masked(op, tape) or (0, 0, None)
        kept = tape.new_number((-1,), torch.int64)
        before.setdefault(id(first), []).append(
            Op(kept_units, (Ref(mask),), {}, (kept,))
        )
        sliced.setdefault(id(first), _Sliced()).outputs = kept
        sliced.setdefault(id(second), _Sliced()).inputs = kept
        _scale_weight(tape, second, scale)
        skipped[op.result] = x
    if sliced:
        tape.ops = list(_rebuilt(tape, sliced, before, skipped))


def _sliceable(op: Op, tape: Tape, uses: Uses) -> tuple[Op, Op, float] | None:
    """(first linear, second linear, scale) around the mask that ``op`` applies."""
    found = masked(op, tape)
    if found is None or not over_last_axis(found[2]):
        return None
    x, _, spec = found
    second = uses.only_consumer(op.result)
    if second is None or (args := linear_arguments(second, tape)) is None:
        return None
    first = _behind(x, op, tape, uses)
    large = tape.constants[args[1]].numel() >= _MIN_WEIGHT
    if first is None or args[0] != op.result or 1 - spec.law.keep_prob < _MIN_RATE:  # type: ignore[attr-defined]
        return None
    weight = tape.constants[first.args[1].number]
    if not (large or weight.numel() >= _MIN_WEIGHT) or weight.shape[0] != spec.numel:
        return None
    return first, second, spec.law.scale  # type: ignore[attr-defined]


def _behind(number: int, user: Op, tape: Tape, uses: Uses) -> Op | None:
    """The linear layer that makes ``number``, seen through elementwise operations."""
    while uses.only_consumer(number) is user:
        user = uses.producer[number]
        if linear_arguments(user, tape) is not None:
            return user
        if not _is_elementwise(user):
            return None
        number = user.args[0].number
    return None


def _is_elementwise(op: Op) -> bool:
    schema = getattr(op.func, "_schema", None)
    if schema is None or schema.name.removeprefix("aten::") not in ELEMENTWISE:
        return False
    return isinstance(op.args[0], Ref) and len(list(op.reads())) == 1


def _scale_weight(tape: Tape, layer: Op, scale: float) -> None:
    number = layer.args[1].number
    scaled = tape.add_constant(tape.constants[number] * scale, group=-1)
    layer.args = (layer.args[0], Ref(scaled), *layer.args[2:])


def _rebuilt(
    tape: Tape,
    sliced: dict[int, _Sliced],
    before: dict[int, list[Op]],
    skipped: dict[int, int],
) -> "list[Op]":
    ops: list[Op] = []
    for op in tape.ops:
        ops += before.get(id(op), [])
        if op.results and op.results[0] in skipped:
            continue  # the mask itself
        if id(op) in sliced:
            ops += _select(tape, op, sliced[id(op)])
            op.args = (
                Ref(skipped.get(op.args[0].number, op.args[0].number)),
                *op.args[1:],
            )
        ops.append(op)
    return ops


def _select(tape: Tape, op: Op, which: _Sliced) -> list[Op]:
    """Operations that gather the rows and columns of the weight that are kept."""
    ops: list[Op] = []

    def gather(source: Ref, axis: int, index: int) -> Ref:
        value = tape.values[source.number]
        result = tape.new_number(value.shape, value.dtype)
        args = (source, axis, Ref(index))
        ops.append(Op(_aten.index_select.default, args, {}, (result,)))
        return Ref(result)

    x, weight, *rest = op.args
    bias = rest[0] if rest else None
    if which.outputs is not None:
        weight = gather(weight, 0, which.outputs)
        bias = None if bias is None else gather(bias, 0, which.outputs)
    if which.inputs is not None:
        weight = gather(weight, 1, which.inputs)
    op.args = (x, weight, bias)
    return ops
