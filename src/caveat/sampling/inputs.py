"""The inputs of a model as batches with a known row axis."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from caveat._torch import pytree
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.sampling.sparse import is_sparse, parts, same_rows, take_rows


@dataclass(frozen=True)
class Batch:
    """Arguments of one call, flattened; tensors of ``rows`` on ``axis`` are batched."""

    leaves: tuple[Any, ...]
    structure: pytree.TreeSpec
    rows: int
    axis: int = 0
    first_row: int = 0

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
        return Batch(tuple(leaves), structure, first.size(axis), axis).nonempty()

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
            and v.size(self.axis) == self.rows
            for v in self.leaves
        )

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """``(args, kwargs)`` for the call."""
        args, kwargs = pytree.tree_unflatten(list(self.leaves), self.structure)
        return args, kwargs

    def take(self, rows: Sequence[int] | slice) -> "Batch":
        """Some of the rows."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.rows)
            leaves = [
                _rows_between(v, self.axis, start, stop) if own else v
                for v, own in zip(self.leaves, self.batched, strict=True)
            ]
            first = self.first_row + start
            return Batch(tuple(leaves), self.structure, stop - start, self.axis, first)
        leaves = [
            take_rows(v, self.axis, rows) if own else v
            for v, own in zip(self.leaves, self.batched, strict=True)
        ]
        return Batch(tuple(leaves), self.structure, len(rows), self.axis)

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
    def signature(self) -> tuple[Any, ...]:
        """What batches must share to be treated alike: all but the number of rows."""
        kinds = tuple(
            self._kind_of(v, own) if isinstance(v, Tensor) else repr(v)
            for v, own in zip(self.leaves, self.batched, strict=True)
        )
        return (str(self.structure), kinds, self.axis)

    def _kind_of(self, tensor: Tensor, batched: bool) -> tuple[Any, ...]:
        if tensor.is_nested:  # its sizes are made up anew for every tensor
            return tensor.dim(), tensor.dtype, tensor.layout
        sizes = list(tensor.shape)
        if batched:
            sizes[self.axis] = -1
        return (*sizes, tensor.dtype, tensor.layout)


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
                yield Batch(piece.leaves, piece.structure, piece.rows, axis, rows)
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


def _as_tensor(array: "np.ndarray[Any, Any]", model: nn.Module | None) -> Tensor:
    tensor = torch.as_tensor(array)
    tensors = () if model is None else (*model.parameters(), *model.buffers())
    like = next((t for t in tensors if t.is_floating_point()), None)
    if like is None:
        return tensor
    return tensor.to(like) if tensor.is_floating_point() else tensor.to(like.device)


def _rows_between(tensor: Tensor, axis: int, start: int, stop: int) -> Tensor:
    if is_sparse(tensor):
        return take_rows(tensor, axis, range(start, stop))
    return tensor.narrow(axis, start, stop - start)


def _check_values(tensors: Sequence[Tensor]) -> None:
    dense = (t.values() if t.is_nested else parts(t)[0] for t in tensors)
    for tensor in dense:
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
    tensors = (*model.parameters(), *model.buffers())
    if not tensors and not model.state_dict():  # quantised modules have only the latter
        raise ParameterError(
            f"{type(model).__name__} has no parameters, so training cannot have given "
            f"it a distribution. Pass the trained network itself."
        )
    return model
