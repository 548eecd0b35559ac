"""Only those parts of values are computed that something reads.

Many models end in one place of all that they have computed: the head of a classifier
reads the first token of a sequence, the next word hangs on the last one. Layers that
treat each place by itself need then be run for that place alone, up to the last one
that mixes places: of a transformer that is the attention of its last layer, where keys
and values are needed everywhere and a query in one place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import torch

from caveat._torch import op_name
from caveat.sampling.noise import NoiseSpec
from caveat.sampling.rewriting.together import BROADCASTS
from caveat.sampling.tape import Op, Ref, Tape, map_refs
from caveat.sampling.work import OPERATION, work_of

_aten = torch.ops.aten

_RESHAPES = frozenset(("view", "_unsafe_view", "reshape", "flatten", "unflatten"))
_COPIES = _RESHAPES | {"contiguous", "to"}  # or views, where nothing need be copied
_SOFTMAXES = ("softmax", "_softmax", "_safe_softmax", "log_softmax", "_log_softmax")


class Stretch(NamedTuple):
    """Places ``start`` to ``stop`` on an axis of a value."""

    axis: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many places."""
        return self.stop - self.start

    def of(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the part of such a value."""
        return (*shape[: self.axis], self.size, *shape[self.axis + 1 :])


class _Less(NamedTuple):
    """How a part of a result is computed: which parts are read, by whom."""

    parts: tuple[Stretch | None, ...]  # of what is read, in its order; None: the whole
    func: Callable[..., Any]
    args: tuple[Any, ...]


def compute_parts(tape: Tape) -> None:
    """Leave out what nothing reads, if that saves more than it costs."""
    if not any(op_name(op.func) in _CUTS for op in tape.ops):
        return
    if any(op.writes for op in tape.ops):
        return
    less = _Rewriter(tape).tape
    if _time(less) < _time(tape):
        vars(tape).update(vars(less))


def _time(tape: Tape) -> float:
    """How long a draw takes, in multiplications."""
    return sum(OPERATION + work_of(op, tape) for op in tape.ops)


class _Reader:
    """Finds out what is read of each value, from the outputs backwards."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape

    def wanted(self) -> dict[int, Stretch | None]:
        """By number: the part that is read, or None for the whole."""
        tape = self._tape
        outputs = [out.number for out in tape.outputs if isinstance(out, Ref)]
        found: dict[int, Stretch | None] = dict.fromkeys(outputs)
        for op in reversed(tape.ops):
            less = self.less(op, found)
            if less is None:
                found.update((n, None) for n in op.results if n is not None)
            reads = tuple(op.reads())
            parts = (None,) * len(reads) if less is None else less.parts
            for number, part in zip(reads, parts, strict=True):
                if found.setdefault(number, part) != part:
                    found[number] = None
        for number, noise in tape.noises.items():
            if type(noise) is not NoiseSpec:
                found[number] = None
        return found

    def less(self, op: Op, wanted: Mapping[int, Stretch | None]) -> _Less | None:
        """How to compute what is wanted of a result; None: as it is, and all of it."""
        if len(op.results) != 1 or op.results[0] is None or op.unpack:
            return None
        name, part = op_name(op.func), wanted.get(op.result)
        if name in _CUTS and part is None:
            return _cut(self, op, _CUTS[name])
        rule = _RULES.get(name, _same_places if name in BROADCASTS else None)
        return None if part is None or rule is None else rule(self, op, part)

    def shape(self, number: int) -> tuple[int, ...]:
        """Of a whole value."""
        return self._tape.values[number].shape

    def rank(self, op: Op) -> int:
        """Axes of a result."""
        return len(self.shape(op.result))


class _Rewriter:
    """Writes the tape of what is wanted."""

    def __init__(self, tape: Tape) -> None:
        reader = _Reader(tape)
        self._wanted = reader.wanted()
        self._parts: dict[tuple[int, Stretch], Ref] = {}
        self.tape = tape.copy()
        self.tape.ops = []
        self._draw_less()
        for op in tape.ops:
            less = reader.less(op, self._wanted)
            self.tape.ops.append(op if less is None else self._written(op, less))

    def _draw_less(self) -> None:
        """Noise has addresses, so that a part of it can be made alone."""
        for number, noise in self.tape.noises.items():
            part = self._wanted.get(number)
            if part is not None and isinstance(noise, NoiseSpec):
                starts = [*noise.starts, *[0] * (len(noise.shape) - len(noise.starts))]
                starts[part.axis] += part.start
                shape = part.of(noise.shape)
                less = replace(noise, shape=shape, starts=tuple(starts))
                self.tape.noises[number] = less
                self._narrow(number, part)

    def _written(self, op: Op, less: _Less) -> Op:
        parts = iter(less.parts)

        def read(number: int) -> Ref:
            part = next(parts)
            return Ref(number) if part is None else self._part_of(number, part)

        args = map_refs(read, less.args)
        kwargs = {k: map_refs(read, v) for k, v in op.kwargs.items()}
        part = self._wanted.get(op.result)
        if part is not None:
            self._narrow(op.result, part)
        new = Op(less.func, args, kwargs, op.results, path=op.path)
        if op_name(op.func) in _COPIES:
            self._may_share(new)
        return new

    def _part_of(self, number: int, part: Stretch) -> Ref:
        tape, known = self.tape, self._parts.get((number, part))
        if known is not None:
            return known
        cut = (Ref(number), part.axis, part.start, part.stop)
        if number in tape.constants:
            found = Ref(tape.derive(_aten.slice.Tensor, *cut))
        elif self._wanted[number] == part:
            return Ref(number)
        else:
            value = tape.values[number]
            found = Ref(tape.new_number(part.of(value.shape), value.dtype))
            new = Op(_aten.slice.Tensor, cut, {}, (found.number,))
            tape.ops.append(new)
            self._may_share(new)
        self._parts[number, part] = found
        return found

    def _narrow(self, number: int, part: Stretch) -> None:
        value = self.tape.values[number]
        self.tape.values[number] = replace(value, shape=part.of(value.shape))

    def _may_share(self, op: Op) -> None:
        """Its result may lie in the memory of what it reads."""
        values, (source, *_) = self.tape.values, op.reads()
        values[op.result] = replace(values[op.result], group=values[source].group)


# ------------------------------------------------------------------ what takes a part

Cut = Callable[..., Stretch | None]


def _cut(reader: _Reader, op: Op, cut: Cut) -> _Less | None:
    """The same operation, on a value that holds no more than the part that it takes."""
    part = _part_taken(reader, op, cut)
    size = reader.shape(next(op.reads()))
    if part is None or not 0 < part.size < size[part.axis]:
        return None
    where = (0,) if cut is _selected else (0, part.size)
    return _Less((part,), op.func, (op.args[0], part.axis, *where))


def _part_taken(reader: _Reader, op: Op, cut: Cut) -> Stretch | None:
    first, *rest = op.args
    if not isinstance(first, Ref) or op.kwargs or len([*op.reads()]) > 1:
        return None
    return cut(reader.shape(first.number), *rest)


def _selected(shape: tuple[int, ...], dim: int, index: Any) -> Stretch | None:
    if not isinstance(index, int):
        return None
    axis = dim % len(shape)
    return Stretch(axis, index % shape[axis], index % shape[axis] + 1)


def _sliced(
    shape: tuple[int, ...],
    dim: int = 0,
    start: Any = None,
    end: Any = None,
    step: Any = 1,
) -> Stretch | None:
    if step != 1 or not all(v is None or isinstance(v, int) for v in (start, end)):
        return None
    axis = dim % len(shape)
    return Stretch(axis, *slice(start, end).indices(shape[axis])[:2])


_CUTS: dict[str, Cut] = {"select": _selected, "slice": _sliced}


# ------------------------------------------------------------------ rules

Rule = Callable[[_Reader, Op, Stretch], _Less | None]


def _select(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    taken = _part_taken(reader, op, _selected)
    if taken is None:
        return None
    axis = part.axis + (part.axis >= taken.axis)
    return _of_first(op, part._replace(axis=axis))


def _slice(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    taken = _part_taken(reader, op, _sliced)
    if taken is None or taken.axis == part.axis:
        return None
    return _of_first(op, part)


def _of_first(op: Op, part: Stretch, *args: Any) -> _Less | None:
    """A part of the first argument, and the others as they are."""
    if not op.args or not isinstance(op.args[0], Ref):
        return None
    others = [None] * (len([*op.reads()]) - 1)
    return _Less((part, *others), op.func, (op.args[0], *(args or op.args[1:])))


def _same_places(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    """Element by element; what has one place there, or no such axis, is read whole."""
    result, parts = reader.shape(op.result), []
    for number in op.reads():
        shape = reader.shape(number)
        axis = part.axis - (len(result) - len(shape))
        whole = axis < 0 or shape[axis] == 1
        if not whole and shape[axis] != result[part.axis]:
            return None
        parts.append(None if whole else part._replace(axis=axis))
    return _Less(tuple(parts), op.func, op.args)


def _last_axes(n_axes: Callable[[Op], int]) -> Rule:
    """An operation on the last axes, the same in all other places."""

    def rule(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
        apart = part.axis < reader.rank(op) - n_axes(op)
        return _of_first(op, part) if apart else None

    return rule


def _along(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    """An operation along the axes of its second argument, which it keeps."""
    axes, rank = op.args[1], len(reader.shape(next(op.reads())))
    if rank != reader.rank(op) or axes is None:
        return None
    axes = axes if isinstance(axes, list | tuple) else [axes]
    along = {axis % rank for axis in axes} or {part.axis}
    return None if part.axis in along else _of_first(op, part)


def _transpose(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    rank = reader.rank(op)
    one, other = (op.args[1] % rank, op.args[2] % rank)
    axis = {one: other, other: one}.get(part.axis, part.axis)
    return _of_first(op, part._replace(axis=axis))


def _permute(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    return _of_first(op, part._replace(axis=op.args[1][part.axis] % reader.rank(op)))


def _reshape(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    """If the axis stays one: as many elements before it, and as long."""
    before, after = reader.shape(next(op.reads())), reader.shape(op.result)
    size, ahead = after[part.axis], prod(after[: part.axis])
    for axis, own in enumerate(before):
        if own == size and prod(before[:axis]) == ahead:
            less = _of_first(op, part._replace(axis=axis), list(part.of(after)))
            return less and less._replace(func=_aten.reshape.default)
    return None


def _expand(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    less = _same_places(reader, op, part)
    wider = list(part.of(reader.shape(op.result)))
    return less and less._replace(args=(op.args[0], wider))


def _product(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    """Rows of a matrix product: rows of the left factor."""
    ranks = [len(reader.shape(number)) for number in op.reads()]
    if len(ranks) != 2 or min(ranks) < 2 or part.axis != reader.rank(op) - 2:
        return None
    return _of_first(op, part._replace(axis=ranks[0] - 2))


def _baddbmm(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    start = reader.shape(next(op.reads()))
    if op.kwargs.get("beta") != 0 or start or part.axis != 1:
        return None
    return _Less((None, part, None), op.func, op.args)


def _attention(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    """The places of queries; a causal mask hangs on where they stand."""
    rank, reads = reader.rank(op), list(op.reads())
    causal = (*op.args[5:], op.kwargs.get("is_causal", False))[0]
    if part.axis != rank - 2 or causal or len(reads) > 4 or rank < 3:
        return None
    parts: list[Stretch | None] = [part, None, None]
    for mask in reads[3:]:
        shape = reader.shape(mask)
        if len(shape) < 2:
            return None
        parts.append(None if shape[-2] == 1 else part._replace(axis=len(shape) - 2))
    return _Less(tuple(parts), op.func, op.args)


def _cat(reader: _Reader, op: Op, part: Stretch) -> _Less | None:
    axis = op.args[1] % reader.rank(op) if len(op.args) > 1 else 0
    if part.axis == axis:
        return None
    return _Less((part,) * len([*op.reads()]), op.func, op.args)


_RULES: dict[str, Rule] = {
    "select": _select,
    "slice": _slice,
    **dict.fromkeys(_RESHAPES, _reshape),
    **dict.fromkeys(_SOFTMAXES, _along),
    **dict.fromkeys(("mean", "sum", "amax", "amin"), _along),
    **dict.fromkeys(("layer_norm", "rms_norm"), _last_axes(lambda op: len(op.args[1]))),
    "linear": _last_axes(lambda op: 1),
    "transpose": _transpose,
    "permute": _permute,
    "expand": _expand,
    **dict.fromkeys(("mm", "bmm", "matmul"), _product),
    "baddbmm": _baddbmm,
    "scaled_dot_product_attention": _attention,
    "cat": _cat,
}
