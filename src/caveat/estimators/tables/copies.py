"""Rows that are there several times, such as a rare class that was copied to be even.

A copy that is held out is no new row: its twin was learned from. So copies become one
row each, with the weight of all of them.
"""

import warnings
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from caveat.errors import CaveatWarning

Array = NDArray[np.float64]
Kind = TypeVar("Kind", bound=np.generic)

_SHARE = 0.25  # of rows that are copies of others, from which on they are merged
_DIFFERENT = 0.5  # share of different values that a measured column has at least


def without_copies(
    x: Array, y: NDArray[Kind], weight: Array
) -> tuple[Array, NDArray[Kind], Array]:
    """The rows, or each of them once, if many are copies of others.

    Two rows of a few codes may well be alike, and are then two. They count as copies
    where a column holds fractions of which hardly any would come twice, and where rows
    that are alike always have the same target, too.

    Parameters
    ----------
    x : array, shape (rows, columns)
        Finite numbers.
    y : array, shape (rows,) or (rows, outputs)
        Targets or class numbers.
    weight : array, shape (rows,)
        Of the rows; mean 1.

    Returns
    -------
    x, y, weight : array
        In the order in which rows were met first; the weights have a mean of 1.
    """
    keys = _numbered(x)
    count = int(keys.max()) + 1
    if len(x) - count < _SHARE * len(x) or not _is_measured(x, count):
        return x, y, weight
    both = _numbered(np.column_stack([keys, y.reshape(len(x), -1)]))
    if int(both.max()) + 1 > count:
        return x, y, weight
    _, first = np.unique(keys, return_index=True)
    own = np.bincount(keys, weights=weight)
    warnings.warn(
        f"{len(x) - count} of {len(x)} rows are copies of others. Each counts once, "
        f"with the weight of its copies: held out, a copy is no new row.",
        CaveatWarning,
        stacklevel=4,
    )
    order = np.argsort(first)
    rows = first[order]
    return x[rows], y[rows], own[order] / own.mean()


def _numbered(x: Array) -> NDArray[np.int64]:
    """A number for each different row."""
    plain = np.ascontiguousarray(x + 0.0)  # -0.0 is 0.0
    rows = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
    return np.asarray(np.unique(rows, return_inverse=True)[1]).reshape(-1)


def _is_measured(x: Array, count: int) -> bool:
    """Whether a column holds fractions, most of them different."""
    return any(
        bool((column != np.rint(column)).any())
        and len(np.unique(column)) >= _DIFFERENT * count
        for column in x.T
    )
