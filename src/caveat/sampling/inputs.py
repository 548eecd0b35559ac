"""The inputs of a model as batches with a known row axis."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from caveat._torch import pytree
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.sampling.objects import OnTensor, rebuilt, tensors_inside

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


@dataclass(frozen=True)
class Batch:
    """Arguments of one call, flattened; tensors of ``rows`` on ``axis`` are batched.

    The call is that of the model itself, or of the module at ``part`` in it;
    ``positional`` are the names of what it takes by position.
    """

    leaves: tuple[Any, ...]
    structure: pytree.TreeSpec
    rows: int
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
        type. Tensors stay as they are.
        """
        leaves, structure = pytree.tree_flatten((args, dict(kwargs)))
        leaves = [
            _as_tensor(v, model) if isinstance(v, np.ndarray) else v for v in leaves
        ]
        tensors = [v for v in leaves if isinstance(v, Tensor)]
        if not tensors:
            kinds = ", ".join(type(v).__name__ for v in leaves) or "nothing"
            raise InputTypeError(
                f"The input must hold at least one tensor or numpy array. Got {kinds}."
            )
        first = next((t for t in tensors if t.dim() > axis), None)
        if first is None:
            raise ShapeError(
                f"The input needs a batch axis (axis {axis}). Got a tensor of shape "
                f"{tuple(tensors[0].shape)}; for a single case pass x[None]."
            )
        _check_values(tensors)
        rows, names = first.shape[axis], _positional(model)
        return Batch(tuple(leaves), structure, rows, axis, positional=names).nonempty()

    def nonempty(self) -> "Batch":
        """Itself, if there is a row."""
        if self.rows == 0:
            raise ShapeError("The batch is empty: there is no row to predict for.")
        return self

    @cached_property
    def batched(self) -> tuple[bool, ...]:
        """For each leaf, whether it has the rows of the batch."""
        return tuple(
            isinstance(v, Tensor)
            and v.dim() > self.axis
            and v.shape[self.axis] == self.rows
            for v in self.leaves
        )

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``(args, kwargs)`` for a call: objects are new, tensors are shared."""
        return self.fresh_arguments(lambda tensor: tensor)

    def fresh_arguments(
        self, on_tensor: OnTensor
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``(args, kwargs)`` with objects made anew, of ``on_tensor`` of their tensors.

        A model may change an object that it is given (a key-value cache).
        """
        leaves = [
            v if isinstance(v, Tensor) else rebuilt(v, on_tensor) for v in self.leaves
        ]
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return args, kwargs

    def take(self, rows: Sequence[int] | slice) -> "Batch":
        """Some of the rows."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.rows)
            number, first = stop - start, self.first_row + start
            leaves = self._of_rows(lambda v: v.narrow(self.axis, start, number))
            return replace(self, leaves=leaves, rows=number, first_row=first)
        index = torch.tensor(rows)
        leaves = self._of_rows(lambda v: v.index_select(self.axis, index.to(v.device)))
        return replace(self, leaves=leaves, rows=len(rows), first_row=0)

    def _of_rows(self, choose: OnTensor) -> tuple[Any, ...]:
        """The leaves with ``choose`` of every tensor that has the rows."""

        def inside(tensor: Tensor) -> Tensor:
            return choose(tensor) if self._has_rows_inside(tensor) else tensor

        return tuple(
            rebuilt(v, inside) if not isinstance(v, Tensor) else choose(v) if own else v
            for v, own in zip(self.leaves, self.batched, strict=True)
        )

    def _has_rows_inside(self, tensor: Tensor) -> bool:
        """Whether a tensor in an object has the rows; a lone number is a length."""
        has_axis = tensor.dim() > self.axis and tensor.shape[self.axis] == self.rows
        return has_axis and (tensor.dim() > 1 or self.rows > 1)

    def split(self, batch_size: int | None) -> Iterator["Batch"]:
        """The batch in pieces of at most ``batch_size`` rows."""
        if batch_size is None or batch_size >= self.rows:
            yield self
            return
        for start in range(0, self.rows, batch_size):
            yield self.take(slice(start, start + batch_size))

    def two_rows(self) -> tuple[int, int]:
        """Two rows that differ if any do; (0, 0) if the batch has but one."""
        inside = [t for v in self.objects for t in tensors_inside(v)]
        with_rows = [
            *(v for v, own in zip(self.leaves, self.batched, strict=True) if own),
            *(t for t in inside if self._has_rows_inside(t)),
        ]
        for row in range(1, min(self.rows, 64)):
            for tensor in with_rows:
                first, other = (tensor.select(self.axis, i) for i in (0, row))
                if not torch.equal(first, other):
                    return 0, row
        return 0, 0

    @property
    def signature(self) -> tuple[Any, ...]:
        """What batches must share to be treated alike: all but the number of rows."""
        kinds = tuple(
            self._kind_of(v, own) if isinstance(v, Tensor) else self.kind_inside(v)
            for v, own in zip(self.leaves, self.batched, strict=True)
        )
        return (str(self.structure), kinds, self.axis, self.part)

    @property
    def objects(self) -> list[Any]:
        """Leaves that are not tensors and may hold some."""
        return [v for v in self.leaves if not isinstance(v, (Tensor, *_PLAIN))]

    def kind_inside(self, value: Any) -> Any:
        """What an object is; not its ``repr``, which may say where it lies."""
        if isinstance(value, _PLAIN):
            return repr(value)
        inside = tensors_inside(value)
        if not inside:
            return repr(value)
        kinds = [self._kind_of(t, self._has_rows_inside(t)) for t in inside]
        return (type(value).__qualname__, *kinds)

    def _kind_of(self, tensor: Tensor, batched: bool) -> tuple[Any, ...]:
        sizes = list(tensor.shape)
        if batched:
            sizes[self.axis] = -1
        return (*sizes, tensor.dtype)


def batches_of(
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    axis: int,
    batch_size: int | None,
    model: nn.Module,
) -> Iterator[Batch]:
    """The batches of a call: its arguments, split, or those of an iterable argument.

    A single positional argument that is neither a tensor nor an array nor a mapping,
    but can be iterated (``DataLoader``, list, generator), gives one batch an item.
    """
    if len(args) == 1 and not kwargs and _is_iterable_of_batches(args[0]):
        rows = 0
        for item in args[0]:
            batch = _batch_of_item(item, axis, model)
            for piece in batch.split(batch_size):
                yield replace(piece, first_row=rows)
                rows += piece.rows
        if rows == 0:
            raise ShapeError(
                "The iterable of batches is empty: there is nothing to predict."
            )
        return
    yield from Batch.of(args, kwargs, axis=axis, model=model).split(batch_size)


def _is_iterable_of_batches(value: Any) -> bool:
    if isinstance(value, Tensor | np.ndarray | Mapping | str | bytes):
        return False
    return hasattr(value, "__iter__")


def _batch_of_item(item: Any, axis: int, model: nn.Module) -> Batch:
    if isinstance(item, Mapping):
        keywords = {str(name): value for name, value in item.items()}
        return Batch.of((), keywords, axis=axis, model=model)
    args = tuple(item) if isinstance(item, list | tuple) else (item,)
    return Batch.of(args, {}, axis=axis, model=model)


def _positional(model: nn.Module | None) -> tuple[str, ...]:
    try:
        return () if model is None else tuple(signature(model.forward).parameters)
    except (TypeError, ValueError):  # no signature to be had
        return ()


def _as_tensor(array: "np.ndarray[Any, Any]", model: nn.Module | None) -> Tensor:
    tensor = torch.as_tensor(array)
    tensors = () if model is None else (*model.parameters(), *model.buffers())
    like = next((t for t in tensors if t.is_floating_point()), None)
    if like is None:
        return tensor
    return tensor.to(like) if tensor.is_floating_point() else tensor.to(like.device)


def _check_values(tensors: Sequence[Tensor]) -> None:
    for tensor in tensors:
        if tensor.is_floating_point() and bool(torch.isnan(tensor).any()):
            count = int(torch.isnan(tensor).sum())
            raise ParameterError(
                f"The input of shape {tuple(tensor.shape)} has {count} NaN values. "
                f"Fill or drop them first: every draw would be NaN."
            )


def check_model(model: Any) -> nn.Module:
    """A module with something to have been trained."""
    if not isinstance(model, nn.Module):
        raise InputTypeError(
            f"model must be a torch.nn.Module. Got {type(model).__name__}; "
            f"wrap a function in a module whose forward calls it."
        )
    if next(model.parameters(), None) is None and next(model.buffers(), None) is None:
        raise ParameterError(
            f"{type(model).__name__} has no parameters, so training cannot have given "
            f"it a distribution. Pass the trained network itself."
        )
    return model
