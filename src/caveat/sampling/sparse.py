"""Sparse tensors as what they are made of: values and indices, which are dense.

A sparse tensor has no storage of its own. The recorder goes by those of its parts, and
takes that of the values as the storage of the whole: the values may depend on noise.
Where the *pattern* depends on noise, the number of values does, too, and nothing can be
replayed (:func:`draws_its_pattern`).
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from caveat._torch import OpOverload, op_arguments, op_name, sparse_parts

LAYOUTS = frozenset(
    (
        torch.sparse_coo,
        torch.sparse_csr,
        torch.sparse_csc,
        torch.sparse_bsr,
        torch.sparse_bsc,
    )
)


def is_sparse(tensor: Tensor) -> bool:
    """Whether a tensor is of any sparse layout."""
    return tensor.layout in LAYOUTS


def parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """Values and indices of a sparse tensor; a dense one has but itself."""
    return sparse_parts(tensor) if is_sparse(tensor) else (tensor,)


def rebuilt(tensor: Tensor, swap: Callable[[Tensor], Tensor]) -> Tensor:
    """``tensor`` with ``swap(part)`` for each of its parts."""
    if not is_sparse(tensor):
        return swap(tensor)
    values, *indices = map(swap, sparse_parts(tensor))
    if tensor.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(
            indices[0],
            values,
            tensor.shape,
            is_coalesced=tensor.is_coalesced(),
            check_invariants=False,
        )
    return torch.sparse_compressed_tensor(
        indices[0],
        indices[1],
        values,
        tensor.shape,
        layout=tensor.layout,
        check_invariants=False,
    )


# ------------------------------------------------------------ patterns

# Operations that look for the places which are not zero.
_LOOKS_FOR_ZEROS = frozenset(
    """
    to_sparse _to_sparse to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr
    to_sparse_bsc _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc
    """.split()
)
_PRODUCTS = frozenset("mm matmul _sparse_mm _sparse_sparse_matmul addmm".split())


def draws_its_pattern(
    func: OpOverload, args: Sequence[Any], is_noisy: Callable[[Any], bool]
) -> bool:
    """Whether noise decides where the values of a sparse result are."""
    name = op_name(func)
    if name in _LOOKS_FOR_ZEROS:
        return not is_sparse(args[0]) and is_noisy(args[0])
    if name in _PRODUCTS:
        # Libraries differ in whether a product keeps a value that happens to be 0.
        return sum(isinstance(a, Tensor) and is_sparse(a) for a in args) > 1
    indices = _index_arguments(func)
    return any(is_noisy(args[i]) for i in indices if i < len(args))


@cache
def _index_arguments(func: OpOverload) -> tuple[int, ...]:
    """Positions of the indices among the arguments of what makes sparse tensors."""
    name = op_name(func)
    if "sparse" not in name or "tensor" not in name:
        return ()
    return tuple(i for i, a in enumerate(op_arguments(func)) if "indices" in a.name)


# ------------------------------------------------------------ rows


def take_rows(tensor: Tensor, axis: int, rows: Sequence[int]) -> Tensor:
    """``index_select`` for tensors of any layout."""
    index = torch.tensor(rows, device=tensor.device)
    if not is_sparse(tensor):
        return tensor.index_select(axis, index)
    chosen = tensor.to_sparse_coo().index_select(axis, index).coalesce()
    return _in_layout_of(tensor, chosen)


def _in_layout_of(like: Tensor, tensor: Tensor) -> Tensor:
    if like.layout in (torch.sparse_bsr, torch.sparse_bsc):
        return tensor  # blocks need not divide the rows that were taken
    return tensor.to_sparse(layout=like.layout)


def same_rows(tensor: Tensor, axis: int, one: int, other: int) -> bool:
    """Whether two rows are equal, in any layout."""
    if not is_sparse(tensor):
        return torch.equal(tensor.select(axis, one), tensor.select(axis, other))
    left, right = take_rows(tensor, axis, (one, other)).to_dense().unbind(axis)
    return torch.equal(left, right)
