"""Records of a reproduction as CSV: one dataclass, one row each."""

import csv
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")


def write_records(path: Path, records: Sequence[R]) -> None:
    """Write records of one kind as CSV, in place of what the file held.

    Parameters
    ----------
    path : Path
        Of the file; it is complete at any time, whenever the program is stopped.
    records : sequence of dataclass instances
        At least one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    with draft.open("w", newline="") as file:
        names = [field.name for field in fields(records[0])]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_rounded(asdict(record)) for record in records)
    draft.replace(path)


def read_records(path: Path, kind: type[R]) -> list[R]:
    """Records that :func:`write_records` wrote; none if there is no such file.

    A column that the file lacks has the default of its field, if there is one.
    """
    if not path.exists():
        return []
    types: dict[str, Any] = {field.name: field.type for field in fields(kind)}
    with path.open(newline="") as file:
        return [
            kind(**{name: types[name](row[name]) for name in types if name in row})
            for row in csv.DictReader(file)
        ]


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
