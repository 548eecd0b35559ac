"""The units of an input folder: a row group of Parquet each, else a file."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

import pyarrow as pa
import pyarrow.parquet as pq

from caveat.errors import DataError, ParameterError
from caveat.frames import Dialect
from caveat.frames.reading import PARQUET, group_sizes
from caveat.scoring.outcomes import Failed

_SHOWN = 16  # hexadecimal digits of a unit's hash in the name of its file


@final
@dataclass(frozen=True)
class Unit:
    """A piece of the input, and the file that it becomes.

    Attributes
    ----------
    source : str
        The file, relative to the input folder, with slashes.
    group : int or None
        Which row group; None is the whole file.
    content : str
        The SHA-256 of the file.
    stamp : tuple of int
        Size and time of change when it was read for that.
    name : str
        Of its output, relative to the output folder. Model, content and settings are
        in it as a hash, so that no two that differ share a name.
    """

    source: str
    group: int | None
    content: str
    stamp: tuple[int, int]
    name: str


class UnitPlan(NamedTuple):
    """All units in order, and the files of which there are none as they are broken."""

    units: list[Unit]
    broken: list[Failed]
    n_files: int


def plan_units(root: Path, settings: Mapping[str, Any], reads: Dialect) -> UnitPlan:
    """The units of a file or a folder.

    Parameters
    ----------
    root : Path
        A file, or a folder with all its folders. Names that begin with a dot or an
        underscore are left out, as Arrow and Spark do.
    settings : mapping
        All that answers depend on besides the input, for JSON.
    reads : Dialect
        How the files are to be read.

    Returns
    -------
    UnitPlan
    """
    ending = settings["output_format"]
    units: list[Unit] = []
    broken: list[Failed] = []
    count = 0
    for path in _files(root):
        source = path.relative_to(root.parent if path == root else root).as_posix()
        kind = reads.format_of(str(path))
        count += 1
        try:
            stamp = stamp_of(path)
            content = digest_of(path)
            groups = _groups(path, kind)
        except (OSError, pa.ArrowException) as error:
            why = str(getattr(error, "strerror", None) or error).splitlines()[0]
            broken.append(Failed(source, f"{path} cannot be read: {why}"))
            continue
        for group in groups:
            own = {"source": source, "group": group, "content": content, **settings}
            mark = hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()
            name = f"{source}.{group or 0:05d}.{mark[:_SHOWN]}.{ending}"
            units.append(Unit(source, group, content, stamp, name))
    return UnitPlan(units, broken, count)


def _files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    if not root.is_dir():
        raise DataError(f"{root} must be a file or a folder. There is none.")
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in folders:
            if (Path(folder) / name).is_symlink():
                raise DataError(
                    f"{Path(folder) / name} is a link to a folder, which is not "
                    f"followed. Give that folder a run of its own."
                )
        found += [Path(folder) / n for n in names if not n.startswith((".", "_"))]
    if not found:
        raise DataError(f"{root} must hold tables. It holds no file.")
    yield from sorted(found, key=lambda path: path.relative_to(root).parts)


def _groups(path: Path, kind: str) -> list[int | None]:
    if kind != PARQUET:
        return [None]
    with pq.ParquetFile(path) as file:
        sizes = group_sizes(file)
    return [number for number, rows in enumerate(sizes) if rows]


def stamp_of(path: Path) -> tuple[int, int]:
    """Size and time of change: whether a file is what it was a moment ago."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def digest_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_apart(root: Path, output: Path) -> None:
    """Results must not lie among the input, nor the input among results."""
    ours, theirs = root.resolve(), output.resolve()
    if ours == theirs or ours in theirs.parents or theirs in ours.parents:
        raise ParameterError(
            f"The output folder must lie apart from the input, or results would be "
            f"scored again. Got {root} and {output}."
        )
