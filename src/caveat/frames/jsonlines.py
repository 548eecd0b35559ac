"""JSON lines: one object a line, columns by name."""

import json
from collections.abc import Iterator
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa

from caveat.errors import DataError

_AT_ONCE = 8192  # rows of a batch


def json_batches(stream: Any, source: str) -> Iterator[Any]:
    """Rows of a stream in batches.

    Parameters
    ----------
    stream : binary file
        A JSON object a line.
    source : str
        What messages call it.

    Yields
    ------
    pyarrow.RecordBatch
        With all columns met so far; what a row does not name is missing.
    """
    names: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    count = 0
    for line in stream:
        if not line.strip():
            continue
        count += 1
        rows.append(_row(line, source, count))
        names.update(dict.fromkeys(rows[-1]))
        if len(rows) == _AT_ONCE:
            yield batch_of(rows, list(names), source, count - len(rows))
            rows = []
    if rows:
        yield batch_of(rows, list(names), source, count - len(rows))


def _row(line: bytes, source: str, number: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{source}, row {number}: not JSON ({error}).") from error
    if not isinstance(found, dict):
        raise DataError(
            f"{source}, row {number}: expected a JSON object of columns, and got "
            f"{str(found)[:40]!r}."
        )
    return found


def batch_of(
    rows: list[dict[str, Any]], names: list[str], source: str, first_row: int = 0
) -> Any:
    """Rows as dicts, in columns.

    Parameters
    ----------
    rows : list of dict
        By column name; what is not there is missing.
    names : list of str
        Of the columns.
    source : str
        What messages call them.
    first_row : int, default 0
        Rows before these.

    Returns
    -------
    pyarrow.RecordBatch
        A column of numbers only is of float64, of booleans only of bool; all else is
        texts.
    """
    columns = [
        _column([_plain(row.get(name)) for row in rows], name, source, first_row)
        for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, names)


def _column(values: list[Any], name: str, source: str, first_row: int) -> Any:
    kinds = {type(value) for value in values} - {type(None)}
    if kinds <= {bool}:
        return pa.array(values, pa.bool_() if kinds else pa.null())
    if kinds == {int} and all(v is None or abs(v) < 2**63 for v in values):
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        plain = [None if v is None else _float(v) for v in values]
        return pa.array(plain, pa.float64())
    for number, value in enumerate(values):
        if isinstance(value, list | dict):
            raise DataError(
                f"{source}, row {first_row + number + 1}: column {name!r} must hold "
                f"numbers, texts, booleans or null, and holds a {type(value).__name__}."
            )
    return pa.array([_text(value) for value in values], pa.large_string())


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, date):  # a datetime is one, too
        return value.isoformat()
    return json.dumps(value, default=str)
