"""Tensors whose number of entries values decide: tokens without padding, picked rows.

A look at two rows may find two runs of three tokens each, and an axis that grows with
the rows. In a batch with rows of two and four tokens that axis has the right size by
accident, and a mask laid out by rows would give two tokens of one row the same numbers.
So it is followed where such tensors come from, and their noise is never laid out.
"""

from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from caveat._torch import OpOverload, op_name
from caveat.sampling.dispatch import tensors_in

# Operations that take as many entries as values say, and which results have them.
_PICKS: dict[str, tuple[int, ...]] = {
    "masked_select": (0,),
    "nonzero": (0,),
    "argwhere": (0,),
    "repeat_interleave": (0,),
    "_unique": (0,),
    "_unique2": (0, 2),
    "unique_dim": (0, 2),
    "unique_consecutive": (0, 2),
    "unique_dim_consecutive": (0, 2),
    "_pack_padded_sequence": (0, 1),
}

# Operations whose results have the shape of one argument, or of what it looks up.
_LIKE_ARGUMENT = {
    "embedding": 1,
    "index_select": 2,
    "gather": 2,
    **dict.fromkeys(
        "index_put index_add index_copy index_fill masked_fill masked_scatter scatter "
        "scatter_add scatter_reduce index_reduce select_scatter slice_scatter".split(),
        0,
    ),
}

_ONLY_FIRST = frozenset("lstm gru rnn_tanh rnn_relu".split())  # states are of rows
_NEVER = frozenset(("_pad_packed_sequence",))


class Ragged:
    """What is known in one look of such tensors.

    Parameters
    ----------
    rows : int
        Of the batch that is looked at.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._marked: WeakValueDictionary[int, Tensor] = WeakValueDictionary()
        self._sizes: set[int] = set()
        self._read: set[int] = set()

    def __contains__(self, tensor: Tensor | None) -> bool:
        return tensor is not None and self._marked.get(id(tensor)) is tensor

    def has_size(self, size: int) -> bool:
        """Whether some such tensor is of this size, but has not one entry a row."""
        return size in self._sizes and size != self._rows

    def read(self, tensor: Any) -> None:
        """Note that Python gets hold of these numbers, which may be lengths."""
        if isinstance(tensor, Tensor) and not (
            tensor.is_floating_point() or tensor.is_complex() or tensor.is_meta
        ):
            self._read.update(map(int, tensor.detach().flatten().tolist()))

    def note(self, func: OpOverload, args: Any, result: Any) -> None:
        """Mark what an operation returned, if need be."""
        name = op_name(func)
        if name == "_local_scalar_dense":
            self.read(args[0])
            return
        results = result if isinstance(result, list | tuple) else (result,)
        picked = self._picked(name, args, results)
        if picked is None:
            self._follow(func, name, args, results)
            return
        for tensor in picked:
            self._mark(tensor)
            if tensor.dim():
                self._sizes.add(tensor.shape[0])

    def _picked(
        self, name: str, args: Any, results: Iterable[Any]
    ) -> list[Tensor] | None:
        """The results whose entries values have picked; None if there are none."""
        if name in _PICKS:
            chosen: Any = [t for i, t in enumerate(results) if i in _PICKS[name]]
        elif (name == "index" and any(map(_is_bool, args[1]))) or (
            name == "cat" and self._joins_rows(*args)
        ):
            chosen = results
        else:
            return None
        return [tensor for tensor in chosen if isinstance(tensor, Tensor)]

    def _joins_rows(self, tensors: Any, dim: int = 0) -> bool:
        """Whether each row is here by itself, as long as Python was told."""
        return len(tensors) == self._rows and all(
            -tensor.dim() <= dim < tensor.dim() and tensor.shape[dim] in self._read
            for tensor in tensors
        )

    def _follow(
        self, func: OpOverload, name: str, args: Any, results: Iterable[Any]
    ) -> None:
        if not self._marked or name in _NEVER:
            return
        if name == "index" and args[1] and args[1][0] is not None:
            args = args[1:]
        elif name in _LIKE_ARGUMENT:
            args = args[_LIKE_ARGUMENT[name] :][:1]
        given = list(tensors_in(args))
        if not any(tensor in self for tensor in given):
            return
        for number, tensor in enumerate(results):
            if not isinstance(tensor, Tensor) or (number and name in _ONLY_FIRST):
                continue
            if not (torch.Tag.pointwise in func.tags and self._fits(tensor, given)):
                self._follow_one(tensor)

    def _follow_one(self, tensor: Tensor) -> None:
        if any(n % size == 0 for n in tensor.shape for size in self._sizes if size):
            self._mark(tensor)

    def _fits(self, result: Tensor, given: list[Tensor]) -> bool:
        """Whether a tensor that is not ragged has the shape of the result."""
        return any(t.shape == result.shape and t not in self for t in given)

    def _mark(self, tensor: Tensor) -> None:
        self._marked[id(tensor)] = tensor


def _is_bool(index: Any) -> bool:
    return isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)
