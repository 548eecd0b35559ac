"""The features of the rows, from whatever holds columns."""

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from caveat.errors import InputTypeError, ShapeError
from caveat.evaluation.estimates import Array

Rows = NDArray[np.int64]
Values = np.ndarray[Any, Any]


@final
@dataclass(frozen=True)
class FeatureTable:
    """Columns by number, of which only the rows that are asked for are read.

    Attributes
    ----------
    names : tuple of str
        Of the columns.
    take : callable
        Of a column number and row numbers: the values there.
    row_names : sequence, optional
        What the rows are called, if that is not their number.
    first_row : int
        The number of the first row: 1 for those of a file, as messages count them.
    """

    names: tuple[str, ...]
    take: Callable[[int, Rows], Values]
    row_names: Any = None
    first_row: int = 0


@final
@dataclass(frozen=True)
class FeatureColumn:
    """Some values of a column, as numbers or as categories.

    Attributes
    ----------
    name : str
        Of the column.
    values : array
        Numbers or dates; or words, "missing" where they are.
    numbers : array of float64, optional
        By which values are in order, NaN where missing; None for categories.
    """

    name: str
    values: Values
    numbers: Array | None = None

    def word(self, place: int) -> str:
        """One of the values as text."""
        value = self.values[place]
        if self.numbers is None:
            return str(value)
        if np.isnan(self.numbers[place]):
            return "missing"
        if self.values.dtype.kind == "M":
            return np.datetime_as_string(value, unit="auto")
        if self.values.dtype.kind == "m":
            return str(value)
        return _digits(float(value))


def as_table(x: Any, n_rows: int) -> FeatureTable:
    """Columns of a table in any of the usual kinds.

    Parameters
    ----------
    x : data frame, pyarrow table, mapping of columns, array, Tensor or sparse matrix
        As many rows as there are predictions. A FeatureTable is given back.
    n_rows : int
        How many.

    Returns
    -------
    FeatureTable
    """
    if isinstance(x, FeatureTable):
        return x
    names, take, rows = _read(x)
    if rows != n_rows:
        raise ShapeError(
            f"x must have one row for each of the {n_rows} predictions. Got {rows} "
            f"rows; pass the rows the predictive was made from, in their order."
        )
    return FeatureTable(tuple(map(str, names)), take, _row_names(x))


def as_column(name: str, values: Values) -> FeatureColumn:
    """Values as numbers where they are numbers or dates, else as categories."""
    kind = values.dtype.kind
    if kind in "iuf":
        return _of_numbers(name, values)
    if kind in "mM":
        return _of_dates(name, values)
    held = [None if _is_missing(v) else v for v in values.tolist()]
    there = [v for v in held if v is not None]
    if there and all(isinstance(v, Real) and not isinstance(v, bool) for v in there):
        return _of_numbers(
            name, np.array([np.nan if v is None else float(v) for v in held])
        )
    if there and all(isinstance(v, datetime.date) for v in there):
        naive = [_naive(v) for v in held]
        return _of_dates(name, np.array(naive, dtype="datetime64[us]"))
    words = ["missing" if v is None else str(v) for v in held]
    return FeatureColumn(name, np.array(words, dtype=object))


def _read(x: Any) -> tuple[Sequence[Any], Callable[[int, Rows], Values], int]:
    """Names of the columns, a reader of rows, and how many rows there are."""
    if isinstance(x, Mapping):
        columns = [_flat(name, values) for name, values in x.items()]
        lengths = {len(values) for values in columns}
        if len(lengths) != 1:
            raise ShapeError(
                f"x must have columns of one length. Got lengths {sorted(lengths)}."
            )
        return list(x), lambda k, rows: columns[k][rows], lengths.pop()
    if hasattr(x, "column_names") and hasattr(x, "num_rows"):  # pyarrow

        def of_arrow(k: int, rows: Rows) -> Values:
            part = x.column(k).take(rows)
            found: Values = np.asarray(part.to_numpy(zero_copy_only=False))
            return found

        return x.column_names, of_arrow, int(x.num_rows)
    if hasattr(x, "iloc") and hasattr(x, "columns"):  # pandas
        return (
            list(x.columns),
            lambda k, rows: np.asarray(x.iloc[:, k].iloc[rows]),
            len(x),
        )
    if hasattr(x, "get_columns"):  # polars
        series = x.get_columns()
        return x.columns, lambda k, rows: series[k].gather(rows).to_numpy(), len(x)
    return _of_array(x)


def _of_array(x: Any) -> tuple[Sequence[Any], Callable[[int, Rows], Values], int]:
    if hasattr(x, "tocsc"):  # scipy's sparse matrices
        sparse = x.tocsc()
        return (
            [f"column {k}" for k in range(sparse.shape[1])],
            lambda k, rows: sparse[:, [k]].toarray()[rows, 0],
            sparse.shape[0],
        )
    array = _array(x)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise ShapeError(
            f"x must be a table, (rows, columns). Got the shape {array.shape}; leave x "
            f"out for images and sequences, or pass a table of what describes the rows."
        )
    names = [f"column {k}" for k in range(array.shape[1])]
    return names, lambda k, rows: array[rows, k], len(array)


def _flat(name: Any, values: Any) -> Values:
    array = _array(values)
    if array.ndim != 1:
        raise ShapeError(
            f"Column {str(name)!r} of x must have one value per row. Got the shape "
            f"{array.shape}."
        )
    return array


def _array(values: Any) -> Values:
    if isinstance(values, Tensor):
        return values.detach().double().numpy(force=True)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise InputTypeError(f"x must be a table. Got {type(values).__name__}.") from (
            error
        )
    if array.ndim == 0:
        raise InputTypeError(
            f"x must be a data frame, a pyarrow table, a dict of columns or an array "
            f"of the shape (rows, columns). Got {type(values).__name__}."
        )
    return array


def _row_names(x: Any) -> Any:
    """The index of a data frame, unless it only counts from 0."""
    index = getattr(x, "index", None)
    if index is None or callable(index) or not hasattr(x, "iloc"):
        return None
    counts = getattr(index, "start", None) == 0 and getattr(index, "step", None) == 1
    return None if counts else index


def _of_numbers(name: str, values: Values) -> FeatureColumn:
    return FeatureColumn(name, values, values.astype(np.float64))


def _of_dates(name: str, values: Values) -> FeatureColumn:
    numbers = values.astype(np.int64).astype(np.float64)
    return FeatureColumn(name, values, np.where(np.isnat(values), np.nan, numbers))


def _naive(value: Any) -> Any:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)
    return value


def _digits(value: float) -> str:
    """Whole numbers as they are, such as years; four digits of others."""
    whole = value.is_integer() and abs(value) < 1e9
    return (f"{value:.0f}" if whole else f"{value:.4g}").replace("-", "−")


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA will not say
        return True
    except ValueError:  # a list of values, each of which may say
        return False
