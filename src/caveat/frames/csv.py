"""CSV as a stream of batches of texts: their kinds are a matter of the schema."""

import csv
import io
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from caveat.errors import DataError, ParameterError

_HEAD = 1 << 20  # bytes in which the header must end
_BLOCK = 1 << 21  # bytes that are parsed at a time
# As Arrow tells it; a handler of bad rows would fail on texts that are not UTF-8.
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+): ?(.*)")
_MARK = b"\xef\xbb\xbf"  # of UTF-8, as some programs write
_OTHERS = (";", "\t", "|", ",")
_BINARY = {  # how files begin that are none
    b"\x1f\x8b": "is packed by gzip; let its name end in .gz",
    b"PAR1": "is Parquet; pass --format parquet",
    b"ARROW1": "is Arrow; pass --format arrow",
    b"PK\x03\x04": "is a zip archive, such as a workbook; save it as CSV",
}


class _Rest(io.RawIOBase):
    """A stream of which the first bytes have been read already."""

    def __init__(self, head: bytes, stream: Any) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._head:
            part, self._head = self._head[: len(buffer)], self._head[len(buffer) :]
        else:
            part = self._stream.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


class CsvReader:
    """The header of a stream, and its rows as batches of texts.

    Parameters
    ----------
    stream : binary file
        Read from where it is.
    source : str
        What messages call it.
    delimiter : str
        One character.
    encoding : str
        Of the texts.
    """

    def __init__(
        self, stream: Any, source: str, *, delimiter: str = ",", encoding: str = "utf-8"
    ) -> None:
        if len(delimiter) != 1:
            raise ParameterError(f"delimiter must be one sign. Got {delimiter!r}.")
        self._source, self._delimiter, self._encoding = source, delimiter, encoding
        head = _without_blank_lines(_first_bytes(stream))
        self._has_rows = True
        self.names = self._header(head)
        self._stream = _Rest(head, stream)

    def batches(self, columns: list[str] | None = None) -> Iterator[Any]:
        """Rows, some columns of them or all, as they come.

        Parameters
        ----------
        columns : list of str, optional
            Which columns; all by default.

        Yields
        ------
        pyarrow.RecordBatch
            Of texts.
        """
        if not self._has_rows:
            return
        wanted = self.names if columns is None else columns
        options = {
            "read_options": arrow_csv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK,
                column_names=self.names,
                skip_rows_after_names=1,
                encoding=self._encoding,
            ),
            "parse_options": arrow_csv.ParseOptions(
                delimiter=self._delimiter,
                newlines_in_values=True,
            ),
            "convert_options": arrow_csv.ConvertOptions(
                # As bytes: a text that is none is then found with its row.
                column_types={n: pa.large_binary() for n in self.names},
                include_columns=list(wanted),
                strings_can_be_null=False,
            ),
        }
        done = 0
        try:
            reader = arrow_csv.open_csv(pa.PythonFile(self._stream, "r"), **options)
            for batch in reader:
                texts = self._decoded(batch, done)
                done += batch.num_rows
                yield texts
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error) or "no data" in str(error).lower():
                return  # a header and no rows
            raise self._wrong(error, done) from error
        except UnicodeError as error:
            raise DataError(
                f"{self._source}, after row {done}: a text is not {self._encoding}; "
                f"pass --encoding, such as latin-1."
            ) from error

    def _decoded(self, batch: Any, done: int) -> Any:
        own = [
            self._texts(batch.column(number), name, done)
            for number, name in enumerate(batch.schema.names)
        ]
        return pa.RecordBatch.from_arrays(own, batch.schema.names)

    def _texts(self, values: Any, name: str, done: int) -> Any:
        try:
            return values.cast(pa.large_string())
        except pa.ArrowInvalid:
            for number, value in enumerate(values.to_pylist()):
                try:
                    value.decode()
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"{self._source}, row {done + number + 1}: column {name!r} "
                        f"holds {value[:30]!r}, which is not UTF-8; pass --encoding, "
                        f"such as latin-1."
                    ) from error
            raise

    def _header(self, head: bytes) -> list[str]:
        if not head.removeprefix(_MARK).strip():
            raise DataError(f"{self._source} must hold a header and rows. It is empty.")
        for start, told in _BINARY.items():
            if head.startswith(start):
                raise DataError(f"{self._source} must be CSV. It {told}.")
        if head[:2] in (b"\xff\xfe", b"\xfe\xff") and self._encoding == "utf-8":
            raise DataError(
                f"{self._source} must be UTF-8. It seems to be UTF-16; pass "
                f"--encoding utf-16."
            )
        try:
            text = head.decode(
                "utf-8-sig" if self._encoding == "utf-8" else self._encoding,
                "surrogateescape" if self._encoding == "utf-8" else "replace",
            )
        except LookupError as error:
            raise ParameterError(f"There is no encoding {self._encoding!r}.") from error
        if "\x00" in text[:1000]:
            raise DataError(f"{self._source} must be a text file. It is binary.")
        lines = io.StringIO(text, newline="")  # a lone \r ends a line, too
        rows = csv.reader(lines, delimiter=self._delimiter)
        try:
            names = next(rows)
        except (StopIteration, csv.Error) as error:
            raise DataError(f"{self._source} has no header to be read.") from error
        if not names:
            raise DataError(
                f"{self._source} must begin with its header. Its first line is empty; "
                f"remove it."
            )
        self._check(names)
        self._has_rows = _more(rows)
        return names

    def _check(self, names: list[str]) -> None:
        if any("\udc80" <= sign <= "\udcff" for name in names for sign in name):
            raise DataError(
                f"{self._source}: the header is not UTF-8; pass --encoding, such as "
                f"latin-1."
            )
        if len(names) == 1:
            found = [o for o in _OTHERS if o != self._delimiter and o in names[0]]
            if found:
                raise DataError(
                    f"{self._source} has only one column, {names[0]!r}: it seems to be "
                    f"delimited by {found[0]!r}; pass --delimiter {found[0]!r}."
                )
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise DataError(
                f"{self._source} must have columns of different names. {twice[0]!r} "
                f"stands there more than once."
            )

    def _wrong(self, error: Exception, done: int) -> DataError:
        why = str(error).splitlines()[0]
        ragged = _RAGGED.search(why)
        if ragged:
            number, expected, came, text = ragged.groups()
            row = f"row {int(number) - 1}" if number else f"after row {done}"
            return DataError(
                f"{self._source}, {row}: expected {expected} columns, and got {came} "
                f"({text[:60]!r})."
            )
        if "straddl" in why:
            why = f"a row is longer than {_BLOCK} bytes, or a quote is never closed"
        return DataError(f"{self._source}, after row {done}: {why}.")


def _more(rows: Iterator[list[str]]) -> bool:
    """Whether anything but blank lines follows.

    Arrow gives up on a file without rows while its thread still reads it; if the
    process ends then, which it mostly does, that thread aborts it.
    """
    try:
        return any(rows)
    except csv.Error:  # Arrow will say what is wrong with it
        return True


def _without_blank_lines(head: bytes) -> bytes:
    """Arrow would take the header below an empty line for a row."""
    mark = _MARK if head.startswith(_MARK) else b""
    return mark + head[len(mark) :].lstrip(b"\r\n")


def _first_bytes(stream: Any) -> bytes:
    """All of the header at least, and the start of the rows."""
    parts: list[bytes] = []
    size = 0
    while size < _HEAD:
        part = stream.read(min(1 << 16, _HEAD - size))
        if not part:
            break
        parts.append(part)
        size += len(part)
        if part.count(b"\n") and size > 4096:
            break
    return b"".join(parts)
