"""Rules for rows that are chosen, and for what is joined row by row."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

from caveat.errors import (
    InputTypeError,
    ParameterError,
    RowIndexError,
    ShapeError,
)


def row_index(index: Any, n_rows: int) -> slice | Tensor:
    """Rows as a forward slice, or as a tensor of row numbers or a mask."""
    if isinstance(index, tuple | bool) or index is None or index is Ellipsis:
        raise InputTypeError(
            f"Only rows can be chosen, by a number, slice, mask or list of numbers. "
            f"Got {index!r}; index the answer instead, as in predictive.mean[:, 0]."
        )
    if isinstance(index, slice):
        numbers = range(n_rows)[index]
        return index if numbers.step > 0 else torch.tensor(list(numbers)).long()
    if isinstance(index, Integral):
        row = row_numbers(torch.tensor([int(index)]), n_rows).item() % n_rows
        return slice(row, row + 1)
    try:
        rows = torch.as_tensor(index).cpu()  # as an index it serves all devices
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputTypeError(f"Rows cannot be chosen by {index!r}.") from error
    if rows.numel() == 0 and rows.dtype != torch.bool:
        rows = rows.long()
    if rows.ndim != 1 or rows.is_floating_point() or rows.is_complex():
        raise InputTypeError(
            f"Rows must be chosen by one axis of row numbers or bools. "
            f"Got shape {tuple(rows.shape)} and dtype {rows.dtype}."
        )
    if rows.dtype == torch.bool:
        if len(rows) != n_rows:
            raise ShapeError(
                f"A mask must have one bool per row. Got {len(rows)} for {n_rows} rows."
            )
        return rows
    return row_numbers(rows.long(), n_rows)


def row_numbers(rows: Tensor, n_rows: int) -> Tensor:
    """Numbers of rows that there are; negative ones count from the end."""
    bad = rows[(rows < -n_rows) | (rows >= n_rows)]
    if len(bad):
        raise RowIndexError(
            f"Row numbers must lie in [-{n_rows}, {n_rows}). Got {int(bad[0])}."
        )
    return rows


def instances(name: str, values: Sequence[Any], kind: type[Any]) -> list[Any]:
    """A sequence of at least one value, all of the same ``kind``."""
    values = list(values)
    if not values:
        raise ParameterError(
            f"{name} must hold at least one {kind.__name__}. Got none."
        )
    for value in values:
        if not isinstance(value, kind) or type(value) is not type(values[0]):
            raise InputTypeError(
                f"{name} must all be of the same kind of {kind.__name__}. "
                f"Got {type(value).__name__} beside {type(values[0]).__name__}."
            )
    return values


def all_equal(name: str, values: Sequence[Any]) -> None:
    """Predictives are joined only if they agree in ``name``."""
    for value in values:
        if value != values[0]:
            raise ShapeError(
                f"Predictives can be joined only if they agree in the {name}. "
                f"Got {values[0]} and {value}; make them with the same settings."
            )
