"""Many draws at once: a tape whose values have an axis of draws in front.

With few rows a draw is all overhead: each operation costs microseconds whatever its
size. Most operations take one more axis as they are, or with their dimensions moved
by one; convolutions and recurrent layers take the draws as more rows. What has no rule
here is left to ``torch.vmap``, one operation at a time. Where a drawn value decides the
way, all draws go on, and it is noted which of them still go this one.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from caveat._torch import can_map, op_name, op_overload
from caveat.sampling.checks import Same, SameInEach
from caveat.sampling.rewriting.in_place import ELEMENTWISE
from caveat.sampling.sparse import is_sparse
from caveat.sampling.tape import Op, Ref, Tape, map_refs, refs_in

_aten = torch.ops.aten

# Numbers go to numbers, tensors of fewer axes are repeated in front.
BROADCASTS = ELEMENTWISE | frozenset(
    """
    addcdiv addcmul alias atan2 bitwise_and bitwise_not bitwise_or bitwise_xor clone
    contiguous detach eq floor_divide fmod ge gt isfinite isinf isnan le lerp
    logical_and logical_not logical_or logical_xor lt masked_fill maximum minimum
    nan_to_num ne remainder rsub to true_divide where _to_copy
    """.split()
)

# The argument that is a dimension, or a list of them.
_DIMENSIONS: dict[str, tuple[int, ...]] = {
    "softmax.int": (1,),
    "_softmax.default": (1,),
    "_safe_softmax.default": (1,),
    "log_softmax.int": (1,),
    "_log_softmax.default": (1,),
    "sum.dim_IntList": (1,),
    "mean.dim": (1,),
    "amax.default": (1,),
    "amin.default": (1,),
    "argmax.default": (1,),
    "cumsum.default": (1,),
    "logsumexp.default": (1,),
    "norm.ScalarOpt_dim": (2,),
    "transpose.int": (1, 2),
    "unsqueeze.default": (1,),
    "squeeze.dim": (1,),
    "select.int": (1,),
    "slice.Tensor": (1,),
    "narrow.default": (1,),
    "split.Tensor": (2,),
    "split_with_sizes.default": (2,),
    "chunk.default": (2,),
    "unbind.int": (1,),
    "index_select.default": (1,),
    "flip.default": (1,),
    "roll.default": (2,),
}
_DEFAULTS = {"slice.Tensor": 0, "split.Tensor": 0, "chunk.default": 0, "unbind.int": 0}
_DEFAULTS["split_with_sizes.default"] = 0

_RESHAPES = frozenset(
    "view.default _unsafe_view.default reshape.default flatten.using_ints "
    "squeeze.default unflatten.int".split()
)

# As many rows more as there are draws; the number of axes that a batch has.
_MORE_ROWS = {
    "conv1d.default": 3,
    "conv2d.default": 4,
    "conv3d.default": 5,
    "max_pool1d.default": 3,
    "max_pool2d.default": 4,
    "avg_pool1d.default": 3,
    "avg_pool2d.default": 4,
    "adaptive_avg_pool1d.default": 3,
    "adaptive_avg_pool2d.default": 4,
    "batch_norm.default": 0,
    "group_norm.default": 0,
}

_RECURRENT = frozenset(("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input"))
_PACKED = frozenset(("lstm.data", "gru.data", "rnn_tanh.data", "rnn_relu.data"))


def draws_together(tape: Tape) -> Tape | None:
    """A tape that computes many draws at a time; None if there is no such thing.

    ``tape`` has no writes where it can do without. If it has checks, there is one more
    output: whether each draw goes this way.
    """
    if any(op.writes for op in tape.ops):
        return None
    if any(op.func is _aten.as_strided.default for op in tape.ops):
        return None  # it speaks of places in memory, which are others here
    if any(0 in value.shape for value in tape.values):
        return None
    if _has_sparse(tape):
        return None  # such a tensor cannot be repeated in front
    if any(getattr(op.func, "namespace", "aten") != "aten" for op in tape.ops):
        return None  # vmap would run it draw by draw, and say so on the screen
    whole = _Rewriter(tape.copy())
    for op in tape.ops:
        if not whole.draws(op) or not whole.add(op):
            return None
    whole.tape.ops = whole.ops
    whole.tape.outputs = [*whole.tape.outputs, *whole.going]
    return whole.tape


def _has_sparse(tape: Tape) -> bool:
    """Whether any value is sparse: a constant, or made by an operation for them."""
    if any(map(is_sparse, tape.constants.values())):
        return True
    return any("sparse" in op_name(op.func) for op in tape.ops)


class _Rewriter:
    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.ops: list[Op] = []
        self._drawn = set(tape.noises)  # numbers of values with an axis of draws
        self.going: tuple[Ref, ...] = ()  # which draws go this way so far
        for number in self._drawn:
            self._widen(number)

    def draws(self, op: Op) -> bool:
        """Whether an operation reads anything that is drawn."""
        return not self._drawn.isdisjoint(op.reads())

    def add(self, op: Op) -> bool:
        """Whether an operation could be added."""
        if op.is_check:
            return self._check(op)
        new = self._by_rule(op, _full_name(op.func))
        if new is None and not can_map(op.func):
            return False
        self.ops.append(self._mapped(op) if new is None else new)
        for number in op.results:
            if number is not None:
                self._drawn.add(number)
                self._widen(number)
        return True

    def _check(self, op: Op) -> bool:
        """Whether a check could be added."""
        check = SameInEach.of(op.func) if isinstance(op.func, Same) else None
        read = op.args[0] if op.args else None
        if check is None or not isinstance(read, Ref) or len([*op.reads()]) != 1:
            return False
        if math.prod(self._shape(read.number)) != 1:
            return False
        number = self.tape.new_number((-1,), torch.bool)
        self.ops.append(Op(check, (read, *self.going), {}, (number,), path=op.path))
        self.going = (Ref(number),)
        return True

    def _widen(self, number: int) -> None:
        value = self.tape.values[number]
        self.tape.values[number] = type(value)(
            (-1, *value.shape), value.dtype, value.group
        )

    def _by_rule(self, op: Op, name: str) -> Op | None:
        if op_name(op.func) in BROADCASTS:
            return self._broadcast(op)
        if name in _DIMENSIONS:
            return self._moved(op, _DIMENSIONS[name], _DEFAULTS.get(name))
        if name in _RESHAPES:
            return self._changed(op, _aten.reshape.default, (-1, *self._result(op)))
        rule = _RULES.get(op_name(op.func))
        if rule is not None:
            return rule(self, op)
        if name in _MORE_ROWS:
            return self._more_rows(op, _MORE_ROWS[name])
        if name in _PACKED:
            return self._packed(op)
        return self._recurrent(op) if name in _RECURRENT else None

    # ------------------------------------------------------------ rules

    def _broadcast(self, op: Op) -> Op | None:
        rank = len(self._result(op))
        if op_name(op.func) in ("clone", "contiguous", "_to_copy"):
            kwargs = {k: v for k, v in op.kwargs.items() if k != "memory_format"}
            op = Op(op.func, op.args[:1], kwargs, op.results, path=op.path)

        def aligned(number: int) -> Ref:
            return Ref(self._with_rank(number, rank))

        args = map_refs(aligned, op.args)
        kwargs = {k: map_refs(aligned, v) for k, v in op.kwargs.items()}
        return Op(op.func, args, kwargs, op.results, path=op.path)

    def _moved(self, op: Op, places: Sequence[int], default: int | None) -> Op | None:
        """Dimensions counted from the front move by one."""
        first = op.args[0]
        if not isinstance(first, Ref) or not self._only_first(op):
            return None
        args = list(op.args)
        if default is not None and len(args) == places[0]:
            args.append(default)
        for place in places:
            if place >= len(args) or _shifted(args[place]) is None:
                return None
            args[place] = _shifted(args[place])
        return Op(op.func, tuple(args), op.kwargs, op.results, op.unpack, path=op.path)

    def _linear(self, op: Op) -> Op | None:
        if self._only_first(op):
            return op
        x, weight, *rest = op.args
        bias = rest[0] if rest else None
        if len(self._shape(x.number)) != 2:
            return None
        own = bias is not None and bias.number in self._drawn
        return self._changed(op, _linear_of_each, weight, bias, own)

    def _mm(self, op: Op) -> Op | None:
        return Op(_aten.matmul.default, op.args, {}, op.results, path=op.path)

    def _matmul(self, op: Op) -> Op | None:
        left, right = (len(self._shape(r.number)) for r in op.args)
        drawn = [r.number in self._drawn for r in op.args]
        if min(left, right) < 2:
            return None
        if left == right or (drawn[0] and not drawn[1] and right == 2):
            return self._mm(op)
        return None

    def _addmm(self, op: Op) -> Op | None:
        start, left, right = op.args[:3]
        if op.kwargs or start.number in self._drawn:
            return None
        return Op(_product_and, (start, left, right), {}, op.results, path=op.path)

    def _baddbmm(self, op: Op) -> Op | None:
        if op.kwargs.get("beta") != 0:
            return None
        args = (*op.args[1:3], op.kwargs.get("alpha", 1))
        return Op(_scaled_product, args, {}, op.results, path=op.path)

    def _layer_norm(self, op: Op) -> Op | None:
        return op if self._only_first(op) else None

    def _permute(self, op: Op) -> Op | None:
        rank = len(self._result(op))
        dims = [0, *(d % rank + 1 for d in op.args[1])]
        return self._changed(op, op.func, dims)

    def _t(self, op: Op) -> Op | None:
        if len(self._result(op)) != 2:
            return None
        return self._changed(op, _aten.transpose.int, 1, 2)

    def _expand(self, op: Op) -> Op | None:
        shape = self._result(op)
        x = self._with_rank(op.args[0].number, len(shape))
        args = (Ref(x), [-1, *shape])
        return Op(op.func, args, {}, op.results, path=op.path)

    def _cat(self, op: Op) -> Op | None:
        parts, dim = op.args[0], op.args[1] if len(op.args) > 1 else 0
        if not all(r.number in self._drawn for r in parts):
            return None
        args = (parts, _shifted(dim))
        return Op(op.func, args, {}, op.results, path=op.path)

    def _attention(self, op: Op) -> Op | None:
        query, key, value = op.args[:3]
        if not all(r.number in self._drawn for r in (query, key, value)):
            return None
        return op if all(n not in self._drawn for n in refs_in(op.args[3:])) else None

    def _more_rows(self, op: Op, rank: int) -> Op | None:
        if not self._only_first(op):
            return None
        if rank and len(self._shape(op.args[0].number)) != rank:
            return None
        if len(self._shape(op.args[0].number)) < 2:
            return None
        return Op(_AsRows(op.func), op.args, op.kwargs, op.results, path=op.path)

    def _recurrent(self, op: Op) -> Op | None:
        if not self._only_first(op) or len(self._shape(op.args[0].number)) != 3:
            return None
        func = _RecurrentRows(op.func)
        return Op(func, op.args, op.kwargs, op.results, op.unpack, path=op.path)

    def _packed(self, op: Op) -> Op | None:
        if not self._only_first(op):
            return None
        func = _PackedRows(op.func)
        return Op(func, op.args, op.kwargs, op.results, op.unpack, path=op.path)

    def _packing(self, op: Op) -> Op | None:
        return self._behind(op, given=2, found=1)

    def _padding(self, op: Op) -> Op | None:
        return self._behind(op, given=1, found=2)

    def _behind(self, op: Op, *, given: int, found: int) -> Op | None:
        """The second result is sizes or lengths, which have no axis of draws."""
        first, second = op.results
        if not self._only_first(op) or self._is_used(second):
            return None
        func = _Behind(op.func, given=given, found=found)
        return Op(func, op.args, op.kwargs, (first, None), op.unpack, path=op.path)

    def _is_used(self, number: int | None) -> bool:
        read = (n for op in self.tape.ops for n in op.reads())
        return number is not None and (
            number in read or Ref(number) in self.tape.outputs
        )

    # ------------------------------------------------------------ the rest

    def _mapped(self, op: Op) -> Op:
        numbers = list(refs_in(op.args)) + list(refs_in(tuple(op.kwargs.values())))
        dims = tuple(0 if n in self._drawn else None for n in numbers)
        func = _Mapped(op.func, op.args, op.kwargs, dims)
        args = tuple(Ref(n) for n in numbers)
        return Op(func, args, {}, op.results, op.unpack, path=op.path)

    def _shape(self, number: int) -> tuple[int, ...]:
        """Of one draw."""
        shape = self.tape.values[number].shape
        return shape[1:] if number in self._drawn else shape

    def _result(self, op: Op) -> tuple[int, ...]:
        (number,) = op.results
        assert number is not None
        return self.tape.values[number].shape

    def _only_first(self, op: Op) -> bool:
        """Whether the first argument, and no other, is drawn."""
        others = refs_in((*op.args[1:], *op.kwargs.values()))
        first = op.args[0]
        return (
            isinstance(first, Ref)
            and first.number in self._drawn
            and all(n not in self._drawn for n in others)
        )

    def _changed(self, op: Op, func: Callable[..., Any], *rest: Any) -> Op:
        return Op(func, (op.args[0], *rest), {}, op.results, path=op.path)

    def _with_rank(self, number: int, rank: int) -> int:
        """A drawn value with axes of size one behind that of the draws."""
        shape = self._shape(number)
        if number not in self._drawn or len(shape) >= rank:
            return number
        wider = (1,) * (rank - len(shape)) + shape
        value = self.tape.values[number]
        new = self.tape.new_number((-1, *wider), value.dtype)
        args = (Ref(number), [-1, *wider])
        self.ops.append(Op(_aten.reshape.default, args, {}, (new,)))
        self._drawn.add(new)
        return new


_RULES: dict[str, Callable[[_Rewriter, Op], Op | None]] = {
    "linear": _Rewriter._linear,
    "mm": _Rewriter._mm,
    "bmm": _Rewriter._mm,
    "matmul": _Rewriter._matmul,
    "addmm": _Rewriter._addmm,
    "baddbmm": _Rewriter._baddbmm,
    "layer_norm": _Rewriter._layer_norm,
    "permute": _Rewriter._permute,
    "t": _Rewriter._t,
    "expand": _Rewriter._expand,
    "cat": _Rewriter._cat,
    "stack": _Rewriter._cat,
    "scaled_dot_product_attention": _Rewriter._attention,
    "_pack_padded_sequence": _Rewriter._packing,
    "_pad_packed_sequence": _Rewriter._padding,
}


def _full_name(func: Any) -> str:
    """Name and overload of an operation of ATen, "" of any other function."""
    name = op_name(func)
    return f"{name}.{op_overload(func)}" if name else ""


def _shifted(dim: Any) -> Any:
    """The same dimension, or dimensions, behind an axis of draws."""
    if isinstance(dim, list | tuple):
        return [_shifted(d) for d in dim] if dim else None
    if isinstance(dim, int) and not isinstance(dim, bool):
        return dim if dim < 0 else dim + 1
    return None


def _linear_of_each(
    x: Tensor, weight: Tensor, bias: Tensor | None, own: bool
) -> Tensor:
    """A linear layer with weights of its own in each draw; x is (…, rows, inputs)."""
    out = torch.matmul(x, weight.transpose(-1, -2))
    if bias is None:
        return out
    return out + (bias.unsqueeze(-2) if own else bias)


def _product_and(start: Tensor, left: Tensor, right: Tensor) -> Tensor:
    return torch.matmul(left, right).add_(start)


def _scaled_product(left: Tensor, right: Tensor, scale: float) -> Tensor:
    return torch.matmul(left, right).mul_(scale)


class _AsRows:
    """An operation on rows, with draws as more rows."""

    def __init__(self, func: Callable[..., Any]) -> None:
        self.func = func
        self.__name__ = "rows"

    def __call__(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        draws = x.shape[0]
        return self.func(x.flatten(0, 1), *args, **kwargs).unflatten(0, (draws, -1))


class _RecurrentRows(_AsRows):
    """``aten.lstm.input`` and its kin, with draws as more rows."""

    def __call__(self, x: Tensor, hx: Any, *args: Any, **_: Any) -> Any:
        draws, rows_axis = x.shape[0], 0 if args[-1] else 1  # batch_first
        rows = x.shape[1 + rows_axis]
        x = x.movedim(0, rows_axis).flatten(rows_axis, rows_axis + 1)
        first = [_for_each(state, draws) for state in hx] if _several(hx) else None
        out, *states = self.func(x, first or _for_each(hx, draws), *args)
        out = out.unflatten(rows_axis, (draws, rows)).movedim(rows_axis, 0)
        return (out, *(s.unflatten(1, (draws, rows)).movedim(1, 0) for s in states))


class _PackedRows(_AsRows):
    """``aten.lstm.data`` and its kin: draws as more rows of the same lengths.

    Packed rows lie step by step, longest first, so the draws of a row lie side by side.
    """

    def __call__(self, x: Tensor, sizes: Tensor, hx: Any, *args: Any, **_: Any) -> Any:
        draws, steps = x.shape[:2]
        x = x.movedim(0, 1).flatten(0, 1)
        several = _several(hx)
        first = [_beside(state, draws) for state in (hx if several else [hx])]
        given = first if several else first[0]
        out, *states = self.func(x, sizes * draws, given, *args)
        out = out.unflatten(0, (steps, draws)).movedim(1, 0)
        return (out, *(s.unflatten(1, (-1, draws)).movedim(2, 0) for s in states))


class _Behind(_AsRows):
    """An operation that leaves the last axes alone: draws go there, and come back."""

    def __init__(self, func: Callable[..., Any], *, given: int, found: int) -> None:
        super().__init__(func)
        self._given, self._found = given, found

    def __call__(self, x: Tensor, *args: Any, **kwargs: Any) -> Any:
        out, more = self.func(x.movedim(0, self._given), *args, **kwargs)
        return out.movedim(self._found, 0), more


def _several(hx: Any) -> bool:
    return isinstance(hx, list | tuple)


def _for_each(state: Tensor, draws: int) -> Tensor:
    """A state (layers, rows, units) for the rows of every draw."""
    return state.unsqueeze(1).expand(-1, draws, -1, -1).flatten(1, 2)


def _beside(state: Tensor, draws: int) -> Tensor:
    """A state (layers, rows, units) for every draw of each row."""
    return state.unsqueeze(2).expand(-1, -1, draws, -1).flatten(1, 2)


class _Mapped:
    """Any operation, mapped over draws by torch."""

    def __init__(
        self,
        func: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        dims: tuple[int | None, ...],
    ) -> None:
        self.__name__ = "mapped"
        self._func, self._args, self._kwargs = func, args, kwargs
        self._mapped = torch.vmap(self._call, in_dims=dims)

    def __call__(self, *tensors: Tensor) -> Any:
        return self._mapped(*tensors)

    def _call(self, *tensors: Tensor) -> Any:
        given = iter(tensors)
        args = map_refs(lambda number: next(given), self._args)
        kwargs = {
            k: map_refs(lambda number: next(given), v) for k, v in self._kwargs.items()
        }
        return self._func(*args, **kwargs)
