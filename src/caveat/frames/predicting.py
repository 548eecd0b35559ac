"""From a file of rows to a file of answers, in batches."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from caveat._drafts import checked_output
from caveat._progress import ProgressBar
from caveat.errors import DataError
from caveat.frames.answers import Asking
from caveat.frames.encoding import Encoder
from caveat.frames.model import ROWS, FrameModel
from caveat.frames.reading import CSV, JSON, Dialect, TableSource, open_table
from caveat.frames.schema import BOOLEAN, NUMBER, some
from caveat.frames.values import Place, Spelling, as_texts, numbers
from caveat.frames.writing import write_table

_AT_ONCE = 16 * ROWS  # rows that are answered and written at a time


@final
@dataclass(frozen=True)
class Predicted:
    """What was written.

    Attributes
    ----------
    n_rows : int
    notes : tuple of str
        What had to be made up, a sentence each.
    """

    n_rows: int
    notes: tuple[str, ...]


class Block(NamedTuple):
    """Some rows in their order: features, and the columns that are kept."""

    x: NDArray[np.float64]
    kept: Any


def predict_file(  # noqa: PLR0913, a door: all but the files by name
    model: FrameModel,
    source: Any,
    output: Any,
    *,
    asking: Asking | None = None,
    keep: bool = False,
    unseen: str = "error",
    reads: Dialect | None = None,
    writes: Dialect | None = None,
    progress: bool | None = False,
) -> Predicted:
    """Predict all rows of a file, in memory that does not grow with it.

    Parameters
    ----------
    model : FrameModel
        Fitted.
    source, output : str or Path
        Files, by their endings CSV, Parquet, Arrow or JSON lines; ``"-"`` is standard
        input or output. The output appears when it is complete.
    asking : Asking, optional
        Level, draws and seed.
    keep : bool, default False
        Whether the columns of the input come first.
    unseen : {"error", "missing"}
        What a category is that fit has not seen.
    reads, writes : Dialect, optional
        Where the names of the files do not say all.
    progress : bool or None, default False
        Whether to show a bar.

    Returns
    -------
    Predicted
    """
    asking, encoder = asking or Asking(), Encoder(model.schema, unseen=unseen)
    writes = writes or Dialect()
    kind = writes.format_of(str(output))
    if str(output) != "-":
        inputs = () if isinstance(source, TableSource) else (source,)
        checked_output(output, *inputs)
    done = 0
    with ExitStack() as stack:
        table = stack.enter_context(open_table(source, reads))
        if table.names is not None:
            encoder.check_names(table.names, table.name)
        bar = stack.enter_context(ProgressBar("rows", table.n_rows, progress))
        write = None
        for block in _blocks(table, encoder, keep, is_typed=kind != CSV):
            found = model.answers(block.x, asking)
            if keep:
                found = _beside(block.kept, found, table.name)
            if write is None:
                write = stack.enter_context(write_table(output, found.schema, writes))
            write(found)
            done += len(block.x)
            bar.advance(len(block.x))
        if not done:
            raise DataError(f"{table.name} must hold rows. It has none.")
    return Predicted(done, tuple(encoder.sentences()))


def _blocks(
    table: TableSource, encoder: Encoder, keep: bool, *, is_typed: bool
) -> Iterator[Block]:
    """Blocks of one size, whatever the size of the batches of a format."""
    x: list[NDArray[np.float64]] = []
    kept: list[Any] = []
    done, waiting = table.first_row, 0
    columns = None if keep else list(encoder.schema.needed)
    names: list[str] | None = None
    for batch in table.batches(columns):
        names = names or batch.schema.names
        if keep and batch.schema.names != names:  # of JSON lines
            late = [name for name in batch.schema.names if name not in names]
            raise DataError(
                f"{table.name}, after row {done}: the column {late[0]!r} is not among "
                f"those of the rows before; name it in the first row, as null, or "
                f"leave out --keep."
            )
        x.append(encoder.matrix(batch, table.name, done, table.delimiter))
        if keep:
            kept.append(_kept(batch, table, encoder, done, is_typed=is_typed))
        done += batch.num_rows
        waiting += batch.num_rows
        while waiting >= _AT_ONCE:
            block = _taken(x, kept, _AT_ONCE)
            waiting -= _AT_ONCE
            yield block
    if waiting:
        yield _taken(x, kept, waiting)


def _taken(x: list[NDArray[np.float64]], kept: list[Any], number: int) -> Block:
    rows = np.concatenate(x)
    x[:] = [rows[number:].copy()]
    if not kept:
        return Block(rows[:number], None)
    whole = pa.concat_tables(kept)
    kept[:] = [whole.slice(number)]
    return Block(rows[:number], whole.slice(0, number))


def _kept(
    batch: Any, table: TableSource, encoder: Encoder, done: int, *, is_typed: bool
) -> Any:
    """Input columns as they came; those of formats without types get some."""
    if table.format not in (CSV, JSON) or (table.format == CSV and not is_typed):
        return pa.Table.from_batches([batch])
    spelling = Spelling(encoder.schema.missing, encoder.schema.decimal)
    kinds = {c.name: c.kind for c in encoder.schema.columns}
    own = []
    for name in batch.schema.names:
        values = batch.column(name)
        if kinds.get(name) == NUMBER:
            place = Place(table.name, name, done, table.delimiter)
            plain = numbers(as_texts(values, spelling), place, spelling)
            own.append(pa.array(plain, pa.float64(), from_pandas=True))
        elif kinds.get(name) == BOOLEAN and pa.types.is_boolean(values.type):
            own.append(values)
        else:
            own.append(values.cast(pa.large_string()))
    return pa.Table.from_arrays(own, batch.schema.names)


def _beside(kept: Any, found: Any, source: str) -> Any:
    twice = [name for name in found.schema.names if name in kept.schema.names]
    if twice:
        raise DataError(
            f"{source} must not have the columns {some(twice)}, which are those of the "
            f"answers; leave out --keep."
        )
    for field in reversed(kept.schema):
        found = found.add_column(0, field, kept.column(field.name))
    return found
