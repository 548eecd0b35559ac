"""Learning the schema of a table: kinds of columns, and which are of no use."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caveat.errors import DataError, ParameterError
from caveat.frames.schema import (
    BOOLEAN,
    CATEGORY,
    INTEGER,
    NUMBER,
    TEXT,
    TIME,
    Column,
    Dropped,
    Schema,
    Target,
    some,
)
from caveat.frames.suspecting import (
    are_dressed,
    look_like_dates,
    warn_of_codes,
    warn_of_numbers,
    warn_of_texts,
    warn_of_two_numbers,
)
from caveat.frames.values import (
    Place,
    Spelling,
    are_numbers,
    are_times,
    are_truths,
    as_texts,
    first_odd,
    have_other_decimals,
    is_instant,
    is_number,
    is_text,
    labels,
    merged_by_floats,
    numbers,
    times,
    truths,
)

Array = NDArray[np.float64]

_MOST_SHOWN = 30  # categories of a column with a feature of their own
_FEWEST_IDS = 20  # different values from which a column may be an identifier
_SHARE_OF_IDS = 0.5  # of different values among all, from which a text is one
_ID = re.compile(
    r"(?i)^(.*[_ .-])?(id|uuid|guid|index|idx|rowid|row_?number)$|^.*[a-z]Id$"
)
_LARGEST = 2.0**53  # whole numbers beyond it are no longer told apart
_PHASES = {"day": 1.0, "week": 14.0, "year": 365.0}  # days that are to be covered


@dataclass(frozen=True)
class Wishes:
    """What the user says of the columns.

    Attributes
    ----------
    drop : tuple of str
        Not to be used.
    use : tuple of str
        To be used, whatever they look like.
    categories : tuple of str
        Categories, although they look like numbers.
    units : mapping of str to str
        Of columns.
    """

    drop: tuple[str, ...] = ()
    use: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    units: Mapping[str, str] | None = None

    def check(self, names: Sequence[str], target: str, source: str) -> None:
        """Whether all columns that are spoken of are there."""
        if target not in names:
            raise DataError(
                f"{source} must have the target column {target!r}. "
                f"It has {some(names)}."
            )
        twice = sorted({name for name in names if list(names).count(name) > 1})
        if twice:
            raise DataError(
                f"{source} must have columns of different names. "
                f"{some(twice)} stand there more than once."
            )
        spoken = (*self.drop, *self.use, *self.categories, *(self.units or {}))
        strange = [name for name in spoken if name not in names]
        if strange:
            raise ParameterError(
                f"{source} has no column {some(strange)}. It has {some(names)}."
            )
        if target in self.drop:
            raise ParameterError(f"{target!r} is the target and cannot be dropped.")


@dataclass(frozen=True)
class Origin:
    """Where a table comes from.

    Attributes
    ----------
    source : str
        What messages call it.
    is_untyped : bool
        Whether all values are texts, whose kinds have to be found out (a CSV file).
    delimiter : str
        Of a CSV file.
    """

    source: str
    is_untyped: bool = False
    delimiter: str = ""

    def place(self, column: str) -> Place:
        """Where the values of a column stand."""
        return Place(self.source, column, 0, self.delimiter)


def learn_target(
    table: Any,
    name: str,
    *,
    classify: bool,
    origin: Origin,
    spelling: Spelling,
    unit: str | None = None,
) -> tuple[Target, NDArray[Any], NDArray[np.bool_]]:
    """The target, its values, and which rows have one.

    Parameters
    ----------
    table : pyarrow.Table
        All rows.
    name : str
        Of the column.
    classify : bool
        Whether its values are labels.
    origin : Origin
        For messages and types.
    spelling : Spelling
        How texts are read.
    unit : str, optional
        Of its values.

    Returns
    -------
    target : Target
    values : array, shape (rows with a target,)
    has : array of bool, shape (rows,)
    """
    values, place = as_texts(table.column(name), spelling), origin.place(name)
    if values.null_count == len(values):
        raise DataError(f"{origin.source}: the target column {name!r} holds no values.")
    kind = _kind_of(values, origin, spelling, place)
    if kind is None:
        raise DataError(
            f"{origin.source}: the target column {name!r} must hold numbers or labels, "
            f"and is of the type {values.type}."
        )
    if not classify and kind != NUMBER:
        raise _no_number(values, place)
    if not classify:
        found = numbers(values, place, spelling)
        has = ~np.isnan(found)
        if merged_by_floats(values, found):
            at = int(np.nanargmax(np.abs(found)))
            raise place.error(
                at,
                f"is the target, and {values[at].as_py()} is beyond 2^53, where "
                f"numbers are not told apart; subtract a constant first",
            )
        warn_of_two_numbers(found[has], place)
        warn_of_codes(found, place)
        return _target(name, NUMBER, False, unit, has), found[has], has
    return _labels(values, kind, place, spelling, unit)


def _no_number(values: Any, place: Place) -> DataError:
    """Of a target that is to be numbers: what it holds instead, and what to do."""
    is_texts = is_text(values.type)
    odd = first_odd(values) if is_texts else None
    at = int(pc.index(values.is_valid(), value=True).as_py()) if odd is None else odd
    text, remedy = values[at].as_py(), ""
    if odd is not None and not are_times(values):
        remedy = (
            f"mend it, or if it stands for nothing pass --missing {text!r} "
            f"(missing=[{text!r}]); for labels, "
        )
    elif is_texts and are_dressed(pc.unique(values.drop_null()).to_pylist()):
        remedy = "write plain numbers, without signs in or around them; for labels, "
    return place.error(
        at,
        f"is the target of a regression and must hold numbers, and this is "
        f"{'the text ' * is_texts}{text!r}; {remedy}add --classify (classify=True)"
        f"{' for labels' * (not remedy)}",
    )


def _target(
    name: str, kind: str, is_label: bool, unit: str | None, has: NDArray[np.bool_]
) -> Target:
    return Target(name, kind, is_label, unit, int((~has).sum()))


def _labels(
    values: Any, kind: str, place: Place, spelling: Spelling, unit: str | None
) -> tuple[Target, NDArray[Any], NDArray[np.bool_]]:
    if kind == BOOLEAN:
        found = truths(values, place)
        has = ~np.isnan(found)
        return _target(place.column, BOOLEAN, True, unit, has), found[has] == 1.0, has
    if kind == NUMBER:
        found = numbers(values, place, spelling)
        has = ~np.isnan(found)
        own = found[has]
        if not bool((own == np.rint(own)).all()):
            at = int(np.flatnonzero(has)[np.argmax(own != np.rint(own))])
            raise place.error(
                at,
                f"is to be classified and must hold texts, booleans or whole numbers, "
                f"and this is {found[at]:g}; leave out --classify for a regression",
            )
        if np.abs(own).max() < _LARGEST:
            whole = own.astype(np.int64)
            return _target(place.column, INTEGER, True, unit, has), whole, has
    texts = labels(values, place)
    has = texts.is_valid().to_numpy(zero_copy_only=False)
    named = np.array(texts.drop_null().to_pylist(), dtype=object)
    return _target(place.column, TEXT, True, unit, has), named, has


def learn_columns(
    table: Any, target: Target, wishes: Wishes, origin: Origin, spelling: Spelling
) -> Schema:
    """The schema of all columns beside the target.

    Parameters
    ----------
    table : pyarrow.Table
        The rows that have a target.
    target : Target
        What is predicted.
    wishes : Wishes
        What the user says of columns.
    origin : Origin
        For messages and types.
    spelling : Spelling
        How texts are read.

    Returns
    -------
    Schema
    """
    kept: list[Column] = []
    dropped: list[Dropped] = []
    for name in table.schema.names:
        if name == target.name:
            continue
        if name in wishes.drop:
            dropped.append(Dropped(name, "as asked"))
            continue
        found = _learned(table, name, wishes, origin, spelling)
        if isinstance(found, Column):
            kept.append(found)
        else:
            dropped.append(found)
    if not kept:
        told = "; ".join(f"{d.name!r} is {d.reason}" for d in dropped[:4])
        raise DataError(
            f"{origin.source} must have a column to predict {target.name!r} from. "
            f"{told or 'It has no other column'}."
        )
    return Schema(
        tuple(kept),
        tuple(dropped),
        target,
        spelling.missing,
        spelling.decimal,
        table.num_rows,
        origin.source,
    )


def unit_of(table: Any, name: str, wishes: Wishes) -> str | None:
    """As the user says, or as the metadata of the column do."""
    if wishes.units and name in wishes.units:
        return str(wishes.units[name])
    own = table.schema.field(name).metadata or {}
    for key in (b"unit", b"units"):
        if key in own:
            return str(own[key].decode("utf-8", "replace"))
    return None


def _learned(
    table: Any, name: str, wishes: Wishes, origin: Origin, spelling: Spelling
) -> Column | Dropped:
    place = origin.place(name)
    values = as_texts(table.column(name), spelling)
    is_wanted = name in wishes.use or name in wishes.categories
    codes = origin.is_untyped and name in wishes.categories
    kind = CATEGORY if codes else _kind_of(values, origin, spelling, place)
    if kind is None:
        if is_wanted:
            raise place.error(0, f"cannot be used: it is of the type {values.type}")
        return Dropped(name, f"of the type {values.type}")
    if kind == CATEGORY and name not in wishes.categories:
        warn_of_texts(values, place, is_untyped=origin.is_untyped)
    if name in wishes.categories:
        kind = CATEGORY
    unit = unit_of(table, name, wishes)
    if kind == CATEGORY:
        return _category(values, place, unit, is_wanted)
    if kind == TIME:
        return _time(values, place, unit)
    is_number = kind == NUMBER
    found = numbers(values, place, spelling) if is_number else truths(values, place)
    if kind == NUMBER and not is_wanted:
        reason = _identifier(found, name)
        if merged_by_floats(values, found):
            reason = "whole numbers beyond 2^53, as codes are; --category keeps it"
        if reason is not None:
            return Dropped(name, reason)
        warn_of_numbers(found, place)
    return _numeric(found, name, kind, unit)


def _kind_of(
    values: Any, origin: Origin, spelling: Spelling, place: Place
) -> str | None:
    """By its type, or by all its texts if there are no types."""
    kind = values.type
    if is_number(kind) or pa.types.is_null(kind):
        return NUMBER
    if pa.types.is_boolean(kind):
        return BOOLEAN
    if is_instant(kind):
        return TIME
    if not is_text(kind):
        return None
    if values.null_count == len(values):
        return CATEGORY
    if not origin.is_untyped:  # but JSON has no times, and many tables hold texts
        return TIME if are_times(values) else CATEGORY
    return _kind_of_texts(values, spelling, place)


def _kind_of_texts(values: Any, spelling: Spelling, place: Place) -> str:
    if are_truths(values):
        return BOOLEAN
    if are_numbers(values, spelling):
        return NUMBER
    if are_times(values):
        return TIME
    if have_other_decimals(values, spelling):
        sign, name = {".": (",", "comma"), ",": (".", "point")}[spelling.decimal]
        at = int(pc.index(pc.match_substring(values, sign), value=True).as_py())
        raise place.error(
            at,
            f"holds {values[at].as_py()!r}, which looks like a number with a decimal "
            f"{name}; pass --decimal {sign!r}, or for codes --category "
            f"{place.column!r}",
        )
    return CATEGORY


def _numeric(found: Array, name: str, kind: str, unit: str | None) -> Column | Dropped:
    missing = np.isnan(found)
    known = found[~missing]
    nothing = _nothing(len(np.unique(known)), missing, known)
    if nothing:
        return Dropped(name, nothing)
    fill = float(np.median(known))
    if kind == BOOLEAN:
        fill = float(known.mean() >= 0.5)
    return Column(name, kind, unit, int(missing.sum()), fill)


def _nothing(n_values: int, missing: NDArray[np.bool_], known: Any) -> str | None:
    """Why a column says nothing, if so; where some are missing, that may be news."""
    if n_values == 0:
        return "empty"
    if n_values == 1 and not missing.any():
        value = known[0]
        shown = f"{value:g}" if isinstance(value, float) else repr(value)
        return f"constant, {shown}"
    return None


def _identifier(found: Array, name: str) -> str | None:
    """Whether numbers only name or count rows."""
    known = found[~np.isnan(found)]
    n_values = len(np.unique(known))
    if n_values < max(_FEWEST_IDS, len(known)) or not (known == np.rint(known)).all():
        return None
    if name == "" or _ID.match(name) or np.abs(known).max() >= _LARGEST:
        return f"identifier-like, {n_values} different numbers; --use keeps it"
    if len(known) == len(found) and known[0] in (0, 1) and (np.diff(known) == 1).all():
        return "identifier-like, it counts the rows; --use keeps it"
    return None


def _category(
    values: Any, place: Place, unit: str | None, is_wanted: bool
) -> Column | Dropped:
    texts = labels(values, place)
    missing = texts.is_null().to_numpy(zero_copy_only=False)
    counts = pc.value_counts(texts.drop_null()).to_pylist()
    ranked = sorted(counts, key=lambda c: (-c["counts"], c["values"]))
    seen = [str(c["values"]) for c in ranked]
    nothing = _nothing(len(seen), missing, seen)
    if nothing:
        return Dropped(place.column, nothing)
    n_known = len(texts) - int(missing.sum())
    many = len(seen) >= _FEWEST_IDS and len(seen) > _SHARE_OF_IDS * n_known
    if not is_wanted and len(seen) > 1 and look_like_dates(texts.drop_null()):
        why = (
            "looks like dates or times, which must all be as 2024-05-31 or "
            "2024-05-31T12:00; --use takes categories"
        )
        return Dropped(place.column, why)
    if many and not is_wanted:
        why = f"identifier-like, {len(seen)} different texts; --use keeps it"
        return Dropped(place.column, why)
    shown = len(seen) if len(seen) <= _MOST_SHOWN else _MOST_SHOWN - 1
    own = (place.column, CATEGORY, unit, int(missing.sum()), None)
    return Column(*own, categories=tuple(seen), n_shown=shown)


def _time(values: Any, place: Place, unit: str | None) -> Column | Dropped:
    found = times(values, place)
    missing = np.isnan(found.days)
    known = found.days[~missing]
    nothing = _nothing(len(np.unique(known)), missing, ["one time"])
    if nothing:
        return Dropped(place.column, nothing)
    span, parts = float(np.ptp(known)), ["days"]
    varies = len(np.unique(np.mod(known, 1.0))) > 1
    for part, least in _PHASES.items():
        if span >= least and (varies or part != "day"):
            parts.append(part)
    own = (place.column, TIME, unit, int(missing.sum()), float(np.median(known)))
    return Column(*own, has_zone=found.has_zone, parts=tuple(parts))
