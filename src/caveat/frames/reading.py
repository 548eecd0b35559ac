"""Tables from files and from memory, as a stream of batches."""

import gzip
import sys
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from caveat.errors import CaveatError, DataError, InputTypeError, ParameterError
from caveat.frames.csv import CsvReader
from caveat.frames.jsonlines import batch_of, json_batches

CSV, PARQUET, ARROW, JSON = "csv", "parquet", "arrow", "jsonl"
FORMATS = (CSV, PARQUET, ARROW, JSON)
_ENDINGS = {
    **dict.fromkeys((".csv", ".tsv", ".txt", ".tab"), CSV),
    **dict.fromkeys((".parquet", ".pq", ".parq"), PARQUET),
    **dict.fromkeys((".arrow", ".feather", ".ipc", ".arrows"), ARROW),
    **dict.fromkeys((".jsonl", ".ndjson"), JSON),
}
_AT_ONCE = 8192  # rows of a batch, at most


@dataclass(frozen=True)
class Dialect:
    """How a file is to be read or written.

    Attributes
    ----------
    format : str or None
        One of "csv", "parquet", "arrow" and "jsonl"; by default as its name ends.
    delimiter : str or None
        Of CSV: a comma by default, a tab for ``.tsv``.
    encoding : str
        Of CSV.
    """

    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"

    def format_of(self, path: str) -> str:
        """The format of a file."""
        if self.format is not None:
            if self.format not in FORMATS:
                raise ParameterError(
                    f"format must be one of {', '.join(FORMATS)}. Got {self.format!r}."
                )
            return self.format
        if path == "-":
            return CSV
        ending = Path(path.removesuffix(".gz")).suffix.lower()
        if ending not in _ENDINGS:
            raise ParameterError(
                f"{path} must end in one of {', '.join(_ENDINGS)} (CSV and JSON lines "
                f"also with .gz), or its format must be given: --format csv, of the "
                f"output --output-format csv."
            )
        found = _ENDINGS[ending]
        if found in (PARQUET, ARROW) and path.endswith(".gz"):
            raise ParameterError(
                f"{path} must not end in .gz: only CSV and JSON lines are packed by "
                f"gzip, {found} packs itself."
            )
        return found

    def delimiter_of(self, path: str) -> str:
        """The delimiter of a CSV file."""
        if self.delimiter is not None:
            return {"\\t": "\t", "tab": "\t"}.get(self.delimiter, self.delimiter)
        stem = path.removesuffix(".gz").lower()
        return "\t" if stem.endswith((".tsv", ".tab")) else ","


@dataclass(frozen=True)
class TableSource:
    """An open table.

    Attributes
    ----------
    name : str
        What messages call it.
    names : list of str or None
        Of its columns, as far as they are known before rows are read.
    format : str
        Of the file; "" of a table in memory.
    delimiter : str
        Of a CSV file; "" of others.
    n_rows : int or None
        If that is known before they are read.
    _batches : callable
        From names of columns to batches.
    first_row : int
        Rows of the file before these.
    """

    name: str
    names: list[str] | None
    format: str
    delimiter: str
    n_rows: int | None
    _batches: Any
    first_row: int = 0

    @property
    def is_untyped(self) -> bool:
        """Whether all values are texts."""
        return self.format == CSV

    def batches(self, columns: list[str] | None = None) -> Iterator[Any]:
        """Rows, once, in batches of at most 8,192.

        Parameters
        ----------
        columns : list of str, optional
            Which columns, if there are others; all by default.

        Yields
        ------
        pyarrow.RecordBatch
        """
        known = self.names
        if columns is not None and known is not None:
            columns = [name for name in columns if name in known]
        with _said(self.name):
            for batch in self._batches(columns):
                for start in range(0, batch.num_rows, _AT_ONCE):
                    yield batch.slice(start, _AT_ONCE)

    def whole(self, columns: list[str] | None = None) -> Any:
        """All rows as one ``pyarrow.Table``."""
        tables = [pa.Table.from_batches([b]) for b in self.batches(columns)]
        if not tables:
            raise DataError(f"{self.name} must hold rows. It has none.")
        if self.format != JSON:
            return pa.concat_tables(tables)
        rows = [row for table in tables for row in table.to_pylist()]
        names = list(dict.fromkeys(n for t in tables for n in t.schema.names))
        return pa.Table.from_batches([batch_of(rows, names, self.name)])


@contextmanager
def open_table(
    path: Any, dialect: Dialect | None = None, *, row_group: int | None = None
) -> Iterator[TableSource]:
    """Open a table for reading.

    Parameters
    ----------
    path : str, Path or TableSource
        A CSV, Parquet, Arrow (Feather) or JSON lines file; ``"-"`` is standard input.
        A table that is open already is given back.
    dialect : Dialect, optional
        Where the name of the file does not say all.
    row_group : int, optional
        Of a Parquet file: this group of rows alone.

    Yields
    ------
    TableSource
    """
    if isinstance(path, TableSource):
        yield path
        return
    with ExitStack() as stack:
        yield _opened(stack, str(path), dialect or Dialect(), row_group)


def _opened(
    stack: ExitStack, where: str, dialect: Dialect, row_group: int | None
) -> TableSource:
    if where != "-":
        _check_file(Path(where))
    kind = dialect.format_of(where)
    name = "standard input" if where == "-" else where
    if where == "-" and kind in (PARQUET, ARROW):
        raise ParameterError(
            f"standard input must be CSV or JSON lines. {kind} is read from a file, as "
            f"its end comes first."
        )
    with _said(name):
        if kind in (PARQUET, ARROW):
            # Not mapped: all pages that were read would count as memory in use, and
            # a file that is cut meanwhile would end the process.
            file = stack.enter_context(pa.OSFile(where))
            if kind == ARROW:
                return _arrow(file, name)
            return _parquet(file, name, row_group)
        stream = stack.enter_context(_stream(where))
        if kind == JSON:
            batches = json_batches(stream, name)
            return TableSource(name, None, JSON, "", None, lambda _: batches)
        delimiter = dialect.delimiter_of(where)
        reader = CsvReader(stream, name, delimiter=delimiter, encoding=dialect.encoding)
        return TableSource(name, reader.names, CSV, delimiter, None, reader.batches)


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise DataError(
            f"{path} must be a file. It is a folder; `caveat score` takes those."
        )
    if not path.exists():
        raise DataError(f"{path} must be a file. There is none.")


@contextmanager
def _said(name: str) -> Iterator[None]:
    """Say which file it was."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, zlib.error) as error:
        if isinstance(error, CaveatError | BrokenPipeError):
            raise
        why = str(getattr(error, "strerror", None) or error).splitlines() or ["?"]
        raise DataError(f"{name} cannot be read: {why[0].rstrip('.')}.") from error


@contextmanager
def _stream(where: str) -> Iterator[Any]:
    if where == "-":
        yield sys.stdin.buffer
    elif where.endswith(".gz"):
        with gzip.open(where) as stream:
            yield stream
    else:
        with Path(where).open("rb") as stream:
            yield stream


def _parquet(file: Any, name: str, row_group: int | None) -> TableSource:
    found = pq.ParquetFile(file, pre_buffer=False)
    sizes = group_sizes(found)
    groups = list(range(len(sizes))) if row_group is None else [row_group]

    def batches(columns: list[str] | None) -> Iterator[Any]:
        yield from found.iter_batches(
            batch_size=_AT_ONCE, columns=columns, use_threads=False, row_groups=groups
        )

    names, n_rows = list(found.schema_arrow.names), sum(sizes[g] for g in groups)
    before = sum(sizes[: row_group or 0])
    return TableSource(name, names, PARQUET, "", n_rows, batches, before)


def group_sizes(file: pq.ParquetFile) -> list[int]:
    """The rows of each row group of a Parquet file."""
    found = file.metadata
    return [found.row_group(g).num_rows for g in range(found.num_row_groups)]


def _arrow(file: Any, name: str) -> TableSource:
    head = file.read(6)
    file.seek(0)
    if head == b"ARROW1":
        found = pa.ipc.open_file(file)
        own = (found.get_batch(i) for i in range(found.num_record_batches))
    else:
        found = pa.ipc.open_stream(file)
        own = iter(found)

    def batches(columns: list[str] | None) -> Iterator[Any]:
        for batch in own:
            yield batch if columns is None else batch.select(columns)

    return TableSource(name, list(found.schema.names), ARROW, "", None, batches)


def as_source(table: Any, name: str = "the table") -> TableSource:
    """A table in memory as an open one.

    Parameters
    ----------
    table : pyarrow.Table or RecordBatch, data frame, dict of columns, or list of dict
        Rows by column name. Whatever has Arrow's ``__arrow_c_stream__`` will do, such
        as a frame of polars.
    name : str
        What messages call it.

    Returns
    -------
    TableSource
    """
    found = _as_table(table, name)
    if found.num_rows == 0:
        raise DataError(f"{name} must hold rows. It has none.")

    def batches(columns: list[str] | None) -> Iterator[Any]:
        own = found if columns is None else found.select(columns)
        yield from own.to_batches(max_chunksize=_AT_ONCE)

    names = list(found.schema.names)
    return TableSource(name, names, "", "", found.num_rows, batches)


def _as_table(table: Any, name: str) -> Any:
    try:
        if isinstance(table, pa.Table):
            return table
        if isinstance(table, pa.RecordBatch):
            return pa.Table.from_batches([table])
        if isinstance(table, list | tuple) and all(isinstance(r, dict) for r in table):
            names = list(dict.fromkeys(key for row in table for key in row))
            return pa.Table.from_batches([batch_of(list(table), names, name)])
        if isinstance(table, dict):
            return pa.table(table)
        if hasattr(table, "iloc") and hasattr(table, "columns"):
            frame = table.copy(deep=False)
            frame.columns = [str(column) for column in table.columns]
            return pa.Table.from_pandas(frame, preserve_index=False)
        if hasattr(table, "__arrow_c_stream__"):
            return pa.table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        if isinstance(error, CaveatError):
            raise
        why = str(error).splitlines()[0]
        raise InputTypeError(f"{name} cannot be read as a table: {why}.") from error
    raise InputTypeError(
        f"{name} must be a table with named columns: of pyarrow, pandas or polars, a "
        f"dict of columns or a list of dicts. Got {type(table).__name__}."
    )
