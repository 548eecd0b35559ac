"""From the columns of a table to the matrix of features that estimators take."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caveat.errors import DataError, ParameterError
from caveat.frames.schema import BOOLEAN, CATEGORY, NUMBER, TIME, Column, Schema, some
from caveat.frames.values import (
    Place,
    Spelling,
    as_texts,
    labels,
    numbers,
    times,
    truths,
)
from caveat.predictive.base import count_of

Array = NDArray[np.float64]
_PERIODS = {"day": 1.0, "week": 7.0, "year": 365.2425}  # days
UNSEEN = ("error", "missing")


class Encoder:
    """Makes the matrix of a schema, and counts what it had to make up.

    Parameters
    ----------
    schema : Schema
        Of the table that was fitted.
    unseen : {"error", "missing"}, default "error"
        What a category is that was not there at fit.

    Attributes
    ----------
    notes : Counter of str
        How often a value was filled in of which fit has seen none missing, or a
        category was taken as missing; by what happened.
    """

    def __init__(self, schema: Schema, *, unseen: str = "error") -> None:
        if unseen not in UNSEEN:
            raise ParameterError(f"unseen must be one of {UNSEEN}. Got {unseen!r}.")
        self.schema = schema
        self.notes: Counter[str] = Counter()
        self._unseen = unseen
        self._spelling = Spelling(schema.missing, schema.decimal)

    def sentences(self) -> list[str]:
        """``notes``, a sentence each."""
        return [f"{count_of(n, 'row')}: {what}" for what, n in self.notes.items()]

    def check_names(self, names: list[str], source: str) -> None:
        """Whether all columns that are needed are there, each once."""
        missing = [name for name in self.schema.needed if name not in names]
        if missing:
            raise DataError(
                f"{source} must have the column{'s' * (len(missing) > 1)} "
                f"{some(missing)}. It has {some(names)}."
            )
        twice = [n for n in self.schema.needed if names.count(n) > 1]
        if twice:
            raise DataError(f"{source} must have one column {twice[0]!r}. It has two.")

    def matrix(
        self, table: Any, source: str, first_row: int = 0, delimiter: str = ""
    ) -> Array:
        """The features of some rows.

        Parameters
        ----------
        table : pyarrow.Table or RecordBatch
            With at least the columns needed, in any order.
        source : str
            What messages call it.
        first_row : int, default 0
            Data rows before these.
        delimiter : str, default ""
            Of a CSV file, which says what a comma in a number is not.

        Returns
        -------
        array, shape (rows, features)
        """
        self.check_names(table.schema.names, source)
        found = np.zeros((table.num_rows, len(self.schema.features)))
        start = 0
        for column in self.schema.columns:
            place = Place(source, column.name, first_row, delimiter)
            own = as_texts(table.column(column.name), self._spelling)
            stop = start + len(column.features)
            self._fill(found[:, start:stop], column, own, place)
            start = stop
        return found

    def _fill(self, block: Array, column: Column, values: Any, place: Place) -> None:
        fill: Callable[..., NDArray[np.bool_]] = {
            NUMBER: self._number,
            BOOLEAN: self._boolean,
            TIME: self._time,
            CATEGORY: self._category,
        }[column.kind]
        missing = fill(block, column, values, place)
        if column.n_missing:
            block[:, -1] = missing
        elif missing.any() and column.kind != CATEGORY:
            self.notes[
                f"{column.name!r} was missing, of which fit has seen none: its "
                f"{'median' if column.kind != BOOLEAN else 'usual value'} was taken"
            ] += int(missing.sum())

    def _number(
        self, block: Array, column: Column, values: Any, place: Place
    ) -> NDArray[np.bool_]:
        return _filled(block, numbers(values, place, self._spelling), column)

    def _boolean(
        self, block: Array, column: Column, values: Any, place: Place
    ) -> NDArray[np.bool_]:
        return _filled(block, truths(values, place), column)

    def _time(
        self, block: Array, column: Column, values: Any, place: Place
    ) -> NDArray[np.bool_]:
        found = times(values, place)
        if found.has_zone != column.has_zone and values.null_count < len(values):
            words = ("without a zone", "with a zone")
            raise place.error(
                0,
                f"must hold times {words[column.has_zone]}, as at fit, and holds "
                f"times {words[found.has_zone]}",
            )
        missing = _filled(block, found.days, column)
        waves = [part for part in column.parts if part != "days"]
        for number, wave in enumerate(waves):
            angle = 2.0 * np.pi * found.days / _PERIODS[wave]
            own = block[:, 1 + 2 * number : 3 + 2 * number]
            own[:] = np.stack([np.sin(angle), np.cos(angle)], 1)
            own[missing] = 0.0
        return missing

    def _category(
        self, block: Array, column: Column, values: Any, place: Place
    ) -> NDArray[np.bool_]:
        texts = labels(values, place)
        known = pa.array(column.categories, pa.large_string())
        found = pc.fill_null(pc.index_in(texts, value_set=known), -1).to_numpy(
            zero_copy_only=False
        )
        missing = texts.is_null().to_numpy(zero_copy_only=False)
        unseen = (found < 0) & ~missing
        if unseen.any():
            self._not_seen(column, texts, unseen, place)
        own = np.minimum(found, column.n_shown)  # rare ones share the last feature
        rows = np.flatnonzero(found >= 0)
        block[rows, own[rows]] = 1.0
        if missing.any() and not column.n_missing:
            self.notes[f"{column.name!r} was missing, of which fit has seen none"] += (
                int(missing.sum())
            )
        return np.asarray(missing | unseen)

    def _not_seen(
        self, column: Column, texts: Any, unseen: NDArray[np.bool_], place: Place
    ) -> None:
        if self._unseen == "error":
            at = int(unseen.argmax())
            raise place.error(
                at,
                f"holds the category {texts[at].as_py()!r}, which fit has not seen "
                f"(it has seen {some(column.categories)}); --unseen missing takes it "
                f"as missing",
            )
        self.notes[f"{column.name!r} had a category that fit has not seen"] += int(
            unseen.sum()
        )


def _filled(block: Array, values: Array, column: Column) -> NDArray[np.bool_]:
    missing = np.isnan(values)
    block[:, 0] = np.where(missing, column.fill or 0.0, values)
    return missing
