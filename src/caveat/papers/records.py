"""Records of a reproduction as CSV: one dataclass, one row each."""

import csv
from collections.abc import Sequence
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from caveat.errors import DataError

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

    A column that the file lacks has the default of its field. Without one that is an
    error: another version of Caveat wrote the file, and its numbers mean something
    else.
    """
    if not path.exists():
        return []
    types: dict[str, Any] = {field.name: field.type for field in fields(kind)}
    needed = [field.name for field in fields(kind) if field.default is MISSING]
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        _check(path, needed, rows.fieldnames or ())
        return [
            kind(**{name: types[name](row[name]) for name in types if name in row})
            for row in rows
        ]


def _check(path: Path, needed: Sequence[str], found: Sequence[str]) -> None:
    missing = [name for name in needed if name not in found]
    if missing:
        raise DataError(
            f"{path} should have the columns {', '.join(needed)}; it lacks "
            f"{', '.join(missing)}, so another version wrote it. Move it away, or name "
            "another folder by --output, to run anew."
        )


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
