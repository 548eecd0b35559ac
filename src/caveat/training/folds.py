"""Which rows to train on and which to validate on."""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from caveat.errors import ParameterError

Index = NDArray[np.int64]

_SMALL, _LARGE = 1500, 7000  # rows up to which 5, and from which on 1 fold is used


class Fold(NamedTuple):
    """Row numbers to train on and to validate on."""

    train: Index
    valid: Index


Folds = Callable[[int], list[Fold]]


def folds_by_size(n_rows: int) -> list[Fold]:
    """Contiguous folds: 5 for up to 1500 rows, 3 below 7000, else the last fifth.

    Rows are taken in the order given, which must be random, as that of the splits of
    Table 1 is.

    Parameters
    ----------
    n_rows : int
        At least 5.

    Returns
    -------
    list of Fold
    """
    if n_rows >= _LARGE:
        return last_fifth(n_rows)
    return contiguous_folds(n_rows, 5 if n_rows <= _SMALL else 3)


def last_fifth(n_rows: int) -> list[Fold]:
    """One fold: the last 20 % of the rows."""
    _enough(n_rows, 5)
    return [_fold(n_rows, n_rows - n_rows // 5, n_rows)]


def contiguous_folds(n_rows: int, count: int) -> list[Fold]:
    """So many folds of neighbouring rows, of nearly equal size."""
    _enough(n_rows, count)
    edges = np.linspace(0, n_rows, count + 1).astype(int)
    return [_fold(n_rows, a, b) for a, b in pairwise(edges)]


def _enough(n_rows: int, least: int) -> None:
    if n_rows < least:
        raise ParameterError(
            f"At least {least} rows are needed for these folds. Got {n_rows}."
        )


def _fold(n_rows: int, start: int, stop: int) -> Fold:
    rows = np.arange(n_rows)
    inside = (rows >= start) & (rows < stop)
    return Fold(rows[~inside], rows[inside])
