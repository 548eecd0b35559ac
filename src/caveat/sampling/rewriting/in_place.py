"""In-place operations: out of the way first, back in where they save memory traffic."""

from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from caveat._torch import op_name, op_overload
from caveat.sampling.rewriting.uses import Uses
from caveat.sampling.tape import Op, Ref, Tape, map_refs

_aten = torch.ops.aten

# Element by element, result as large as the first argument.
ELEMENTWISE = frozenset(
    """
    abs acos add asin atan ceil celu clamp clamp_max clamp_min cos cosh div elu erf
    exp expm1 floor gelu hardsigmoid hardswish hardtanh leaky_relu log log1p mish mul
    neg pow reciprocal relu relu6 round rsqrt selu sigmoid sign silu sin sinh softplus
    sqrt square sub tan tanh threshold
    """.split()
)


def without_writes(tape: Tape) -> None:
    """Turn ``relu_(v)`` into ``w = relu(v)`` where nobody else would see the write."""
    _drop_blanks(tape)
    renamed: dict[int, int] = {}
    uses = Uses(tape)
    unseen = {id(op) for op in _unseen_writes(tape, uses)}
    ops: list[Op] = []
    for op in tape.ops:
        op = _renamed(op, renamed)
        if id(op) in unseen:
            ops += _functional(op, tape, renamed)
        else:
            ops.append(op)
    tape.ops = ops
    tape.outputs = [
        Ref(renamed.get(r.number, r.number)) if isinstance(r, Ref) else r
        for r in tape.outputs
    ]


def _drop_blanks(tape: Tape) -> None:
    """Leave out memory that is filled before anything reads it: a clone and its view.

    Passes above autograd make their masks in memory of that kind.
    """
    uses, blank = Uses(tape), set[int]()
    for view in tape.ops:
        if view.func is not _aten.as_strided.default:
            continue
        base = view.args[0].number
        made, users = uses.producer.get(base), uses.consumers[view.result]
        if (
            made is not None
            and made.func is _aten.clone.default
            and uses.consumers[base] == [view]
            and base not in uses.outputs
            and uses.group_size(tape.values[base].group) == 2
            and users
            and _fills(users[0], view.result, tape)
        ):
            blank |= {id(made), id(view)}
    tape.ops = [op for op in tape.ops if id(op) not in blank]


def _fills(op: Op, number: int, tape: Tape) -> bool:
    """Whether an operation writes over all of a value, by another of its kind."""
    if op.func is not _aten.copy_.default or op.results != (None,):
        return False
    if op.args[0] != Ref(number) or op.args[1] == Ref(number):
        return False
    value, source = tape.values[number], tape.values[op.args[1].number]
    return (value.shape, value.dtype) == (source.shape, source.dtype)


def reuse_memory(tape: Tape) -> None:
    """Write the result of an elementwise operation over an argument used up by it."""
    uses = Uses(tape)
    last = {n: op for op in tape.ops for n in op.reads()}
    for op in tape.ops:
        in_place = _in_place_version(op.func)
        if in_place is None or op.writes or len(op.results) != 1:
            continue
        _swap_if_better(op, uses, last)
        target = op.args[0]
        if isinstance(target, Ref) and _used_up(target.number, op, tape, uses, last):
            op.func = in_place


def _swap_if_better(op: Op, uses: Uses, last: dict[int, Op]) -> None:
    """``a + b`` is ``b + a``: let the one that is used up come first."""
    if op_name(op.func) not in ("add", "mul") or len(op.args) != 2 or op.kwargs:
        return
    left, right = op.args
    if isinstance(left, Ref) and isinstance(right, Ref) and left != right:
        dying = [
            uses.is_private(r.number) and last[r.number] is op for r in (left, right)
        ]
        if dying == [False, True]:
            op.args = (right, left)


def _used_up(number: int, op: Op, tape: Tape, uses: Uses, last: dict[int, Op]) -> bool:
    before, after = tape.values[number], tape.values[op.result]
    return (
        uses.is_private(number)
        and number not in uses.outputs
        and last[number] is op
        and sum(n == number for n in op.reads()) == 1
        and before.shape == after.shape
        and before.dtype == after.dtype
    )


def _renamed(op: Op, names: dict[int, int]) -> Op:
    if not names:
        return op

    def new(number: int) -> Ref:
        return Ref(names.get(number, number))

    op.args = map_refs(new, op.args)
    op.kwargs = {k: map_refs(new, v) for k, v in op.kwargs.items()}
    op.writes = tuple(names.get(n, n) for n in op.writes)
    return op


def _unseen_writes(tape: Tape, uses: Uses) -> Iterator[Op]:
    """Writes of one value whose memory is not read under another name from then on."""
    last = {n: place for place, op in enumerate(tape.ops) for n in op.reads()}
    sharing: dict[int, set[int]] = defaultdict(set)
    for number in {*uses.producer, *last, *uses.outputs}:
        sharing[tape.values[number].group].add(number)
    for place, op in enumerate(tape.ops):
        if len(op.writes) != 1 or op.results != (None,):
            continue
        others = sharing[tape.values[op.writes[0]].group] - {op.writes[0]}
        is_read = any(n in uses.outputs or last.get(n, -1) >= place for n in others)
        if isinstance(op.args[0], Ref) and not is_read:
            yield op


def _functional(op: Op, tape: Tape, renamed: dict[int, int]) -> list[Op]:
    """What stands for ``op`` without its write: a new value, or nothing for a copy."""
    target = op.writes[0]
    original = next((old for old, new in renamed.items() if new == target), target)
    value = tape.values[target]
    if op.args[0] != Ref(target):
        return [op]
    if op.func is _aten.copy_.default:
        source = tape.values[op.args[1].number]
        if (value.shape, value.dtype) != (source.shape, source.dtype):
            return [op]
        renamed[original] = op.args[1].number  # simply the source from here on
        return []
    func = _functional_version(op.func)
    if func is None:
        return [op]
    renamed[original] = tape.new_number(value.shape, value.dtype)
    new = (renamed[original],)
    return [Op(func, op.args, op.kwargs, new, path=op.path)]


@cache
def _functional_version(func: Any) -> Any:
    return _sibling(func, op_name(func).removesuffix("_"))


@cache
def _in_place_version(func: Any) -> Any:
    name = op_name(func)
    return _sibling(func, name + "_") if name else None


def _sibling(func: Any, name: str) -> Any:
    if name.rstrip("_") not in ELEMENTWISE or not hasattr(_aten, name):
        return None
    packet = getattr(_aten, name)
    overload = op_overload(func)
    return getattr(packet, overload) if overload in packet.overloads() else None
