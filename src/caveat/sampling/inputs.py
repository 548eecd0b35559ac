"""The inputs of a model as a batch with a known row axis."""

import os
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from inspect import Signature, signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from caveat._torch import is_wrapped
from caveat.errors import (
    CaveatError,
    InputTypeError,
    ParameterError,
    ShapeError,
    UnsupportedModelError,
)
from caveat.sampling.sparse import is_sparse, same_rows, take_rows
from caveat.sampling.trees import Structure, flatten_call, unflatten

_MOST_READINGS = 16

_STRIDED = """The input must have a shape. Got a nested tensor of the strided layout,
which has none. Make it with layout=torch.jagged, or pad it."""

_WRAPPED = """A draw cannot be taken through torch.func or torch.vmap, which hide what a
model does. Got a tensor of theirs. Of mc.function(t) take derivatives by
torch.autograd.grad or torch.autograd.functional, and give it all rows at once; what
the model itself does with torch.func is followed."""


@dataclass(frozen=True)
class Batch:
    """Arguments of one call, flattened.

    Attributes
    ----------
    leaves : tuple
        Tensors and whatever else there is.
    structure : Structure
        How they make up the arguments.
    rows : int
        How many rows there are.
    batched : tuple of bool
        For each leaf, whether it has the rows, on ``axis``; others are for all rows.
    axis : int
    first_row : int
        The number of the first row among those of all batches.
    part : str
        Path of the module that is called: "" for the model itself, else a part of it.
    positional : tuple of str
        The names of what it takes by position.
    """

    leaves: tuple[Any, ...]
    structure: Structure
    rows: int
    batched: tuple[bool, ...] = field(repr=False)
    axis: int = 0
    first_row: int = 0
    part: str = ""
    positional: tuple[str, ...] = ()

    @staticmethod
    def of(
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        *,
        axis: int,
        model: nn.Module | None = None,
    ) -> "Batch":
        """Gather the arguments of a call.

        Numpy arrays become tensors on the device of ``model``, real numbers in its
        type. Tensors stay as they are. The first tensor with more than one row says
        how many there are.
        """
        leaves, structure = flatten_call(args, kwargs)
        leaves = [
            _as_tensor(v, model) if isinstance(v, np.ndarray) else v for v in leaves
        ]
        tensors = [v for v in leaves if isinstance(v, Tensor)]
        if not tensors:
            raise InputTypeError(_no_tensor(args, kwargs))
        for tensor in tensors:
            if tensor.is_nested and tensor.layout is torch.strided:
                raise InputTypeError(_STRIDED)
            if is_wrapped(tensor):
                raise UnsupportedModelError(_WRAPPED)
            if tensor.is_meta:
                raise InputTypeError(
                    f"The input must have values. Got a tensor of shape "
                    f"{tuple(tensor.shape)} on the device 'meta', which has none."
                )
        sizes = [t.size(axis) for t in tensors if t.dim() > axis]
        if not sizes:
            raise ShapeError(
                f"The input needs a batch axis (axis {axis}). Got a tensor of shape "
                f"{tuple(tensors[0].shape)}; for a single case pass x[None]."
            )
        # A single row may be a setting in a tensor of its own: others tell more.
        rows = next((n for n in sizes if n != 1), 1)
        batched = _with_rows(leaves, structure, rows, axis)
        names = _positional(model)
        return Batch(
            tuple(leaves), structure, rows, batched, axis, positional=names
        ).nonempty()

    @property
    def form(self) -> tuple[Any, ...]:
        """All but the leaves, in the order of the fields."""
        return (
            *(self.structure, self.rows, self.batched, self.axis),
            *(self.first_row, self.part, self.positional),
        )

    def nonempty(self) -> "Batch":
        """Itself, if there is a row."""
        if self.rows == 0:
            raise ShapeError("The batch is empty: there is no row to predict for.")
        return self

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``(args, kwargs)`` for a call: containers and objects are new ones.

        So a model that changes them leaves those of the user as they are.
        """
        args, kwargs = unflatten(self.leaves, self.structure)
        return args, kwargs

    def cloned_arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``arguments`` in which tensors are new, too."""
        copies = {id(v): v.clone() for v in self.leaves if isinstance(v, Tensor)}
        leaves = [copies.get(id(v), v) for v in self.leaves]
        args, kwargs = unflatten(leaves, self.structure)
        return args, kwargs

    def readings(self) -> Iterator["Batch"]:
        """The batch, and then what its arguments might mean instead.

        Which tensors have rows follows from sizes. That may be wrong: the first may
        be for all rows, or be as long as there are rows by accident.
        """
        yield self
        seen = {self.batched}
        for rows, batched in self._other_readings():
            if rows and any(batched) and batched not in seen:
                seen.add(batched)
                yield replace(self, rows=rows, batched=batched)
            if len(seen) == _MOST_READINGS:
                return

    def _other_readings(self) -> Iterator[tuple[int, tuple[bool, ...]]]:
        sized = [isinstance(v, Tensor) and v.dim() > self.axis for v in self.leaves]
        sizes = [
            v.size(self.axis) if own else -1
            for v, own in zip(self.leaves, sized, strict=True)
        ]
        several = sorted(
            dict.fromkeys(n for n in sizes if n >= 0), key=lambda n: n == 1
        )
        for rows in several:
            yield rows, tuple(n == rows for n in sizes)
        for rows in several:  # all but one of those that are as long
            for out in (i for i, n in enumerate(sizes) if n == rows):
                yield rows, tuple(n == rows and i != out for i, n in enumerate(sizes))
        for rows in several:  # one alone
            for one in (i for i, n in enumerate(sizes) if n == rows):
                yield rows, tuple(i == one for i in range(len(sizes)))

    def take(self, rows: Sequence[int] | slice) -> "Batch":
        """Some of the rows."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.rows)
            leaves = tuple(
                _rows_between(v, self.axis, start, stop) if own else v
                for v, own in zip(self.leaves, self.batched, strict=True)
            )
            first = self.first_row + start
            return replace(self, leaves=leaves, rows=stop - start, first_row=first)
        leaves = tuple(
            take_rows(v, self.axis, rows) if own else v
            for v, own in zip(self.leaves, self.batched, strict=True)
        )
        return replace(self, leaves=leaves, rows=len(rows), first_row=0)

    def placed(self, first_row: int) -> "Batch":
        """The same rows, from this number on."""
        return replace(self, first_row=first_row)

    def split(self, batch_size: int | None) -> Iterator["Batch"]:
        """The batch in pieces of at most ``batch_size`` rows."""
        if batch_size is None or batch_size >= self.rows:
            yield self
            return
        for start in range(0, self.rows, batch_size):
            yield self.take(slice(start, start + batch_size))

    def two_rows(self) -> tuple[int, int]:
        """Two rows that differ if any do; (0, 0) if the batch has but one."""
        for row in range(1, min(self.rows, 64)):
            for leaf, own in zip(self.leaves, self.batched, strict=True):
                if own and not same_rows(leaf, self.axis, 0, row):
                    return 0, row
        return 0, 0

    @property
    def is_flat(self) -> bool:
        """Whether there are several rows, but nothing in a row."""
        sized = [v.dim() for v in self.leaves if isinstance(v, Tensor)]
        return self.rows > 1 and max(sized) == 1

    @property
    def rows_with_nan(self) -> list[int]:
        """The rows with a NaN in some input."""
        found = torch.zeros(self.rows, dtype=torch.bool)
        for leaf, own in zip(self.leaves, self.batched, strict=True):
            if _is_dense(leaf, own) and leaf.is_floating_point():
                nan = torch.isnan(leaf.detach()).movedim(self.axis, 0)
                found |= nan.reshape(self.rows, -1).any(1).cpu()
        return found.nonzero().flatten().tolist()

    @property
    def signature(self) -> tuple[Any, ...]:
        """What batches must share to be treated alike: all but the number of rows."""
        kinds = tuple(
            self._kind_of(v, own) if isinstance(v, Tensor) else key_of(v)
            for v, own in zip(self.leaves, self.batched, strict=True)
        )
        return (self.structure.key, kinds, self.batched, self.axis, self.part)

    def _kind_of(self, tensor: Tensor, batched: bool) -> tuple[Any, ...]:
        if tensor.is_nested:  # its sizes are made up anew for every tensor
            return tensor.dim(), tensor.dtype, tensor.layout
        sizes = list(tensor.shape)
        if batched:
            sizes[self.axis] = -1
        return (*sizes, tensor.dtype, tensor.device, tensor.layout)


def _is_dense(leaf: Any, own: bool) -> bool:
    return own and leaf.layout == torch.strided and not leaf.is_nested


def _with_rows(
    leaves: Sequence[Any], structure: Structure, rows: int, axis: int
) -> tuple[bool, ...]:
    """Which leaves have the rows; a lone number inside an object is a length."""
    return tuple(
        isinstance(v, Tensor)
        and v.dim() > axis
        and v.size(axis) == rows
        and not (inside and v.dim() == rows == 1)
        for v, inside in zip(leaves, structure.inside(), strict=True)
    )


# ------------------------------------------------------------ other than tensors

_BY_VALUE = (bool, int, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


def key_of(value: Any) -> Any:
    """Equal for values that a model cannot tell apart; else by identity."""
    if type(value) in _BY_VALUE or isinstance(value, Enum):
        return type(value), value
    if type(value) in (float, complex):
        return type(value), repr(value)  # NaN equals itself, -0.0 is not 0.0
    return _Same(value)


class _Same:
    """Equal for the same object, as long as there is one."""

    def __init__(self, value: Any) -> None:
        self._number = id(value)
        try:
            self._get: Any = weakref.ref(value)
        except TypeError:
            self._get = lambda: value  # kept, so that its number is not used again

    def __eq__(self, other: object) -> bool:
        mine = self._get()
        return isinstance(other, _Same) and mine is not None and mine is other._get()

    def __hash__(self) -> int:
        return hash(self._number)


# ------------------------------------------------------------ what cannot be used


def _positional(model: nn.Module | None) -> tuple[str, ...]:
    found = None if model is None else method_signature(model.forward)
    return () if found is None else tuple(found.parameters)


def method_signature(method: Callable[..., Any]) -> Signature | None:
    """The signature of a method, without itself; None if there is none to be had."""
    own = getattr(method, "__func__", None)
    if own is not None and own in _signatures:
        return _signatures[own]
    try:
        found = signature(method)
    except (TypeError, ValueError):
        return None
    if own is not None:
        _signatures[own] = found
    return found


_signatures: "weakref.WeakKeyDictionary[Any, Signature]" = weakref.WeakKeyDictionary()


def _as_tensor(array: "np.ndarray[Any, Any]", model: nn.Module | None) -> Tensor:
    try:
        tensor = torch.as_tensor(_forwards(array))
    except TypeError:
        raise InputTypeError(
            f"An input array must hold numbers. Got one of {array.dtype}."
        ) from None
    like = _float_of(model)
    if like is None:
        return tensor
    return tensor.to(like) if tensor.is_floating_point() else tensor.to(like.device)


def _forwards(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Read forwards along all axes, as torch has no negative strides."""
    return array.copy() if any(step < 0 for step in array.strides) else array


def _rows_between(tensor: Tensor, axis: int, start: int, stop: int) -> Tensor:
    if is_sparse(tensor):
        return take_rows(tensor, axis, range(start, stop))
    return tensor.narrow(axis, start, stop - start)


def _float_of(model: nn.Module | None) -> Tensor | None:
    """A tensor of a model that shows its device and type of real numbers."""
    tensors = () if model is None else (*model.parameters(), *model.buffers())
    return next((t for t in tensors if t.is_floating_point()), None)


def _no_tensor(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    given = (*args, *kwargs.values())
    kinds = ", ".join(dict.fromkeys(type(v).__name__ for v in given)) or "nothing"
    remedy = ""
    if any(hasattr(v, "to_numpy") for v in given):
        remedy = " Pass x.to_numpy()."
    elif any(isinstance(v, int | float | list | tuple) for v in given):
        remedy = " Pass numbers as torch.tensor(...), with rows first."
    return (
        f"The input must hold at least one tensor or numpy array. Got {kinds}.{remedy}"
    )


@contextmanager
def telling(batch: Batch, model: nn.Module) -> Iterator[None]:
    """Say what is wrong with the inputs of a model that fails of them."""
    try:
        yield
    except CaveatError:
        raise
    except Exception as error:
        if 'missing the required "forward"' in str(error):
            raise InputTypeError(_without_forward(model)) from error
        if (reason := misfit(batch, model, error)) is not None:
            raise InputTypeError(f"{reason} ({error})") from error
        if (reason := wrong_shape(batch, model, error)) is not None:
            raise ShapeError(f"{reason} It says: {error}") from error
        raise


def _without_forward(model: nn.Module) -> str:
    parts = [f"model.{name}" for name, _ in model.named_children()]
    return (
        f"model must have a forward method. Got {type(model).__name__}, which has none;"
        f" pass the network inside it ({', '.join(parts[:5]) or 'none'}), or write "
        f"forward."
    )


def wrong_shape(batch: Batch, model: nn.Module, error: Exception) -> str | None:
    """Which shapes a model was given, if those are what it fails of."""
    if not isinstance(error, RuntimeError | ValueError | IndexError):
        return None
    if not _ABOUT_SHAPES.search(str(error)):
        return None
    shapes = [tuple(v.shape) for v in batch.leaves if isinstance(v, Tensor)]
    given = ", ".join(map(str, shapes[:4])) + (", …" if len(shapes) > 4 else "")
    return (
        f"{type(model).__name__} cannot be called with inputs of shape {given}, rows "
        f"on axis {batch.axis}. Pass as many columns, channels or tokens as it was "
        f"trained with."
    )


def misfit(batch: Batch, model: nn.Module, error: Exception) -> str | None:
    """What is wrong with the tensors of a batch, if that is what a model fails of."""
    like = _float_of(model)
    if like is None or not _ABOUT_KINDS.search(str(error)):
        return None
    tensors = [v for v in batch.leaves if isinstance(v, Tensor) and v.dim()]
    name, where = type(model).__name__, like.device
    for tensor in tensors:
        shape = tuple(tensor.shape)
        if tensor.device != where:
            return (
                f"The weights of {name} are on {where}, the input of shape {shape} is "
                f"on {tensor.device}. Pass x.to({str(where)!r})."
            )
        if tensor.is_complex() and not like.is_complex():
            return (
                f"{name} works with real numbers, the input of shape {shape} is "
                f"{tensor.dtype}. Pass its parts: torch.view_as_real(x)."
            )
    floats = [t for t in tensors if t.is_floating_point()]
    suspects = floats or ([] if _embeds(model) else tensors)
    for tensor in (t for t in suspects if t.dtype != like.dtype):
        return (
            f"The weights of {name} are {like.dtype}, the input of shape "
            f"{tuple(tensor.shape)} is {tensor.dtype}. Pass x.to({like.dtype})."
        )
    return None


# Words of torch's errors about types and devices.
_ABOUT_KINDS = re.compile(
    r"dtype|device|scalar type|data type|same type|not implemented for|[Cc]omplex|meta"
)


# Words of torch's errors about sizes.
_ABOUT_SHAPES = re.compile(
    r"shapes? |[Ss]izes? |[Dd]imension|channels|number of elements|broadcast"
)


def _embeds(model: nn.Module) -> bool:
    return any(isinstance(m, nn.Embedding | nn.EmbeddingBag) for m in model.modules())


_ONNX = """model must be a torch.nn.Module. Got an ONNX model: its operations cannot be
followed, and exporters leave dropout out or fix it. Pass the module that it was made
from. If only the file is left and it has Dropout nodes, a converter may make a module
of it (onnx2torch, last released in 2024): see what caveat.audit finds there."""


def _is_onnx(model: Any) -> bool:
    """Whether this is an ONNX model: a file, its content, or a session."""
    if isinstance(model, str | os.PathLike):
        return os.fspath(model).endswith(".onnx")
    return type(model).__module__.split(".")[0] in ("onnx", "onnx_ir", "onnxruntime")


def check_model(model: Any) -> nn.Module:
    """A module with something to have been trained."""
    if not isinstance(model, nn.Module):
        if _is_onnx(model):
            raise InputTypeError(_ONNX)
        raise InputTypeError(
            f"model must be a torch.nn.Module. Got {type(model).__name__}; "
            f"wrap a function in a module whose forward calls it."
        )
    tensors = (*model.parameters(), *model.buffers())
    if not tensors and not model.state_dict():  # quantised modules have only the latter
        raise ParameterError(
            f"{type(model).__name__} has no parameters, so training cannot have given "
            f"it a distribution. Pass the trained network itself."
        )
    return model
