"""Tables to files, which appear only when they are complete."""

import gzip
import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from caveat._drafts import said_of, whole_file
from caveat.errors import ParameterError
from caveat.frames.reading import ARROW, CSV, JSON, PARQUET, Dialect
from caveat.frames.schema import some

_GROUP = 1 << 16  # rows of a row group of Parquet
Write = Callable[[Any], None]


@contextmanager
def write_table(
    path: Any, schema: Any, dialect: Dialect | None = None
) -> Iterator[Write]:
    """Write batches of one schema to a file.

    Parameters
    ----------
    path : str or Path
        As it ends: CSV or JSON lines (also with .gz), Parquet, Arrow; ``"-"`` is
        standard output.
    schema : pyarrow.Schema
        Of all batches.
    dialect : Dialect, optional
        Where the name does not say all.

    Yields
    ------
    callable
        Which takes a ``pyarrow.Table``. The file is there when the block ends without
        an error.
    """
    dialect, where = dialect or Dialect(), str(path)
    kind = dialect.format_of(where)
    if where == "-":
        if kind not in (CSV, JSON):
            raise ParameterError(
                f"standard output can be CSV or JSON lines. Got {kind}; write a file."
            )
        with said_of("standard output"):
            with _to_stream(sys.stdout.buffer, kind, schema, dialect, where) as write:
                yield write
            sys.stdout.buffer.flush()
        return
    with whole_file(where) as draft:
        if kind in (CSV, JSON):
            with _packed(draft, where.endswith(".gz")) as stream:
                with _to_stream(stream, kind, schema, dialect, where) as write:
                    yield write
        elif kind == PARQUET:
            with pq.ParquetWriter(draft, schema) as writer, _grouped(writer) as write:
                yield write
        else:
            assert kind == ARROW
            with (
                pa.OSFile(str(draft), "wb") as sink,
                pa.ipc.new_file(sink, schema) as w,
            ):
                yield w.write_table


@contextmanager
def _packed(draft: Path, is_packed: bool) -> Iterator[Any]:
    with draft.open("wb") as raw:
        if not is_packed:
            yield raw
            return
        # No name and no time: the same rows are the same bytes.
        with gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as stream:
            yield stream


@contextmanager
def _to_stream(
    stream: Any, kind: str, schema: Any, dialect: Dialect, where: str
) -> Iterator[Write]:
    if kind == JSON:
        yield lambda table: _write_json(stream, table)
        return
    options = arrow_csv.WriteOptions(
        delimiter=dialect.delimiter_of(where), quoting_style="needed"
    )
    sink = pa.PythonFile(stream, "w")
    try:
        writer = arrow_csv.CSVWriter(sink, schema, write_options=options)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        nested = [f.name for f in schema if pa.types.is_nested(f.type)]
        which = f"the columns {some(nested)}" if nested else "some columns"
        raise ParameterError(
            f"{where} is CSV, which cannot hold {which} ({error}). Write Parquet or "
            f"JSON lines, or leave out --keep."
        ) from error
    with writer:
        yield writer.write_table


@contextmanager
def _grouped(writer: Any) -> Iterator[Write]:
    """Row groups of one size, however the batches come."""
    kept: list[Any] = []

    def write(table: Any) -> None:
        kept.append(table)
        if sum(t.num_rows for t in kept) >= _GROUP:
            whole = pa.concat_tables(kept)
            full = whole.num_rows - whole.num_rows % _GROUP
            writer.write_table(whole.slice(0, full), row_group_size=_GROUP)
            kept[:] = [whole.slice(full)]

    yield write
    if kept:
        writer.write_table(pa.concat_tables(kept), row_group_size=_GROUP)


def _write_json(stream: Any, table: Any) -> None:
    for row in table.to_pylist():
        plain = {name: _plain(value) for name, value in row.items()}
        stream.write(json.dumps(plain, ensure_ascii=False).encode() + b"\n")


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(name): _plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    return value if isinstance(value, bool | int | float | str | None) else str(value)
