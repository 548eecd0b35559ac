"""Small tables of text: rows with named columns."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from caveat.data import storage

Rows = list[dict[str, str]]


def read_rows(path: Path, columns: Sequence[str], *, delimiter: str = ",") -> Rows:
    """The rows of a table, as text by column.

    Parameters
    ----------
    path : Path
        A file with a header, perhaps a ``.gz``.
    columns : sequence of str
        Those that must be there; others are kept too.
    delimiter : str
        What stands between the columns.

    Returns
    -------
    list of dict
    """
    with storage.reading(path):
        text = storage.read_bytes(path).decode("utf-8-sig")
        rows = list(csv.DictReader(io.StringIO(text), delimiter=delimiter))
        missing = set(columns) - set(rows[0] if rows else ())
        if missing or any(None in row or None in row.values() for row in rows):
            raise storage.damaged(
                path,
                f"every row needs the columns {', '.join(columns)}"
                + (f"; there is no {', '.join(sorted(missing))}" if missing else ""),
            )
        return rows


def numbers(rows: Rows, column: str) -> NDArray[np.float64]:
    """A column of numbers."""
    return np.array([float(row[column]) for row in rows])
