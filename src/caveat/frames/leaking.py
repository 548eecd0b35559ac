"""Columns that say the target itself: most often they are not known beforehand."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat.errors import CaveatWarning
from caveat.frames.schema import Column, Schema, some

_FEWEST = 10  # rows: of fewer, any column may fit by chance
_FEWEST_EACH = 2  # rows of a class, on average
_ROUNDING = 1e-12  # of a correlation


def warn_of_leaks(schema: Schema, x: NDArray[np.float64], y: NDArray[Any]) -> None:
    """Warn of columns from which the target follows without an error.

    Parameters
    ----------
    schema : Schema
        Of the table.
    x : array, shape (rows, features)
        Of :class:`Encoder`.
    y : array, shape (rows,)
        Numbers or labels.
    """
    if len(y) < _FEWEST:
        return
    _, classes = np.unique(y, return_inverse=True)
    found, start = [], 0
    for column in schema.columns:
        own = x[:, start : start + len(column.features)]
        start += len(column.features)
        says = _names_classes if schema.target.is_label else _is_line
        if says(column, own, classes if schema.target.is_label else y):
            found.append(column.name)
    if found:
        one = len(found) == 1
        warnings.warn(
            f"{schema.source}: the column{'' if one else 's'} {some(found)} "
            f"say{'s' if one else ''} the target {schema.target.name!r} in every row. "
            f"If that is not known before the target is, leave it out "
            f"(--drop {found[0]!r}, drop={found[:1]!r}).",
            CaveatWarning,
            stacklevel=4,
        )


def _is_line(column: Column, block: NDArray[np.float64], y: NDArray[Any]) -> bool:
    """Whether the target is the column in other units."""
    if len(column.features) != 1:
        return False
    given = block[:, 0] - block[:, 0].mean()
    aimed = y.astype(np.float64) - y.astype(np.float64).mean()
    sizes = float(np.linalg.norm(given) * np.linalg.norm(aimed))
    return sizes > 0.0 and abs(float(given @ aimed)) >= (1.0 - _ROUNDING) * sizes


def _names_classes(column: Column, block: NDArray[np.float64], y: NDArray[Any]) -> bool:
    """Whether there is one value for each class."""
    n_classes = int(y.max()) + 1
    if _FEWEST_EACH * n_classes > len(y):  # values that all differ name anything
        return False
    if len(column.categories) > n_classes or column.n_shown < len(column.categories):
        return False
    values = block @ (1.0 + np.arange(block.shape[1]))  # a number for each category
    known, numbers = np.unique(values, return_inverse=True)
    if len(known) != n_classes:
        return False
    return len(np.unique(numbers * n_classes + y)) == n_classes
