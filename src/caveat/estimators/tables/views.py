"""The columns of some rows in each way that a model may want them."""

import numpy as np
from numpy.typing import NDArray

from caveat.estimators.tables.columns import Columns

Array = NDArray[np.float64]


class Views:
    """Views of rows by their names, each made once, when it is asked for.

    Parameters
    ----------
    columns : Columns
    x : array, shape (rows, columns)
    """

    def __init__(self, columns: Columns, x: Array) -> None:
        self._columns, self._x = columns, x
        self._made: dict[str, Array] = {}

    def __len__(self) -> int:
        return len(self._x)

    def __getitem__(self, view: str) -> Array:
        if view not in self._made:
            self._made[view] = getattr(self._columns, view)(self._x)
        return self._made[view]


class RowsOfViews:
    """The same of some of the rows.

    Parameters
    ----------
    views : Views
    rows : array of int
    """

    def __init__(self, views: Views, rows: NDArray[np.int64]) -> None:
        self._views, self._rows = views, rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, view: str) -> Array:
        return self._views[view][self._rows]
