"""Dropped units left out of both matrix products beside them.

In  linear → elementwise → mask → linear  a dropped unit is computed in vain and then
multiplied by zero. With one mask for all rows, the unit can be left out: its row of the
first weight and its column of the second. At drop rate f a hidden-to-hidden product
shrinks to (1-f)² of its size.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from caveat._torch import op_name
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
_ALIGNMENT = 16  # numbers; a multiple of every CPU's vector width in float32
_MIN_OUTPUTS = 64  # below, folding the mask into the weight is cheaper


def kept_units(mask: Tensor) -> Tensor:
    """Numbers of the units that a mask keeps, padded with some that it drops.

    Matrix products whose sides are no multiple of the vector width are much slower, so
    a few dropped units are taken along; their weights are zero.
    """
    mask = mask.flatten()
    kept = mask.nonzero().flatten()
    missing = -len(kept) % _ALIGNMENT
    if missing:
        kept = torch.cat([kept, mask.eq(0).nonzero().flatten()[:missing]])
    return kept


def kept_weights(weight: Tensor, kept: Tensor, mask: Tensor) -> Tensor:
    """Columns of the weight for these units, times the mask."""
    return weight.index_select(1, kept).mul_(mask.flatten().index_select(0, kept))


@dataclass
class _Sliced:
    """Which of its outputs and inputs a linear layer keeps, as values of indices."""

    outputs: int | None = None
    inputs: int | None = None
    mask: int | None = None  # of the inputs


def slice_units(tape: Tape) -> None:
    """Leave dropped units out where the pattern stands."""
    uses = Uses(tape)
    sliced: dict[int, _Sliced] = {}  # by id of the linear operation
    before: dict[int, list[Op]] = {}  # operations to add before one, by its id
    replaced: dict[int, int] = {}  # result of a mask's product -> what stands for it
    for op in tape.ops:
        found = _sliceable(op, tape, uses)
        if found is None:
            continue
        first, second = found
        x, mask = _mask_and_input(op)
        kept = tape.new_number((-1,), torch.int64)
        start = first or op
        before.setdefault(id(start), []).append(
            Op(kept_units, (Ref(mask),), {}, (kept,))
        )
        after = sliced.setdefault(id(second), _Sliced())
        after.inputs, after.mask = kept, mask
        if first is not None:
            sliced.setdefault(id(first), _Sliced()).outputs = kept
            replaced[op.result] = x
        else:
            gathered = _gather_columns(tape, x, kept)
            before[id(start)] += gathered
            replaced[op.result] = gathered[-1].result
    if sliced:
        tape.ops = _rebuilt(tape, sliced, before, replaced)


def sliced_before(tape: Tape, number: int) -> Op | None:
    """The layer in which units of value ``number`` would be left out, if there is."""
    uses = Uses(tape)
    op = uses.only_consumer(number)
    found = None if op is None else _sliceable(op, tape, uses)
    return None if found is None else found[0]


def _mask_and_input(op: Op) -> tuple[int, int]:
    x, mask = op.args
    return x.number, mask.number


def _sliceable(op: Op, tape: Tape, uses: Uses) -> tuple[Op | None, Op] | None:
    """(linear before, linear after) the mask that ``op`` applies.

    The layer before is None if the mask acts on a constant.
    """
    found = masked(op, tape)
    if found is None or not over_last_axis(found[2]):
        return None
    x, _, spec = found
    second = uses.only_consumer(op.result)
    args = None if second is None else linear_arguments(second, tape)
    if second is None or args is None or args[0] != op.result:
        return None
    weight = tape.constants[args[1]]
    if 1 - spec.law.keep_prob < _MIN_RATE:  # type: ignore[attr-defined]
        return None
    if x in tape.constants:
        wide = weight.shape[0] >= _MIN_OUTPUTS and weight.numel() >= _MIN_WEIGHT
        return (None, second) if wide and tape.constants[x].dim() == 2 else None
    first = _behind(x, op, tape, uses)
    if first is None:
        return None
    source = tape.constants[first.args[1].number]
    large = max(weight.numel(), source.numel()) >= _MIN_WEIGHT
    return (first, second) if large and source.shape[0] == spec.numel else None


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
    if op_name(op.func) not in ELEMENTWISE:
        return False
    return isinstance(op.args[0], Ref) and len(list(op.reads())) == 1


def _gather_columns(tape: Tape, x: int, kept: int) -> list[Op]:
    """Columns of a constant: rows of its transpose, which lie together in memory."""
    turned = tape.derive(_turned, Ref(x))
    value = tape.values[x]
    rows = tape.new_number(value.shape, value.dtype)
    columns = tape.new_number(value.shape, value.dtype)
    return [
        Op(_aten.index_select.default, (Ref(turned), 0, Ref(kept)), {}, (rows,)),
        Op(_aten.t.default, (Ref(rows),), {}, (columns,)),
    ]


def _turned(x: Tensor) -> Tensor:
    return x.t().contiguous()


def _rebuilt(
    tape: Tape,
    sliced: dict[int, _Sliced],
    before: dict[int, list[Op]],
    replaced: dict[int, int],
) -> list[Op]:
    ops: list[Op] = []
    for op in tape.ops:
        ops += before.get(id(op), [])
        if op.results and op.results[0] in replaced:
            continue  # the mask itself
        if id(op) in sliced:
            ops += _select(tape, op, sliced[id(op)])
            x = op.args[0].number
            op.args = (Ref(replaced.get(x, x)), *op.args[1:])
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
    if which.inputs is not None and which.mask is not None:
        value = tape.values[weight.number]
        result = tape.new_number(value.shape, value.dtype)
        args = (weight, Ref(which.inputs), Ref(which.mask))
        ops.append(Op(kept_weights, args, {}, (result,)))
        weight = Ref(result)
    op.args = (x, weight, bias)
    return ops
