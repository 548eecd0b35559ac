"""Columns of Arrow as numbers, truths, times and texts, by a kind that is known.

Types are never guessed from a batch: texts that must be numbers are read as numbers,
and one that is none is an error with its row. Missing is null, NaN, or a text that is
spelled so.
"""

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from caveat.errors import DataError

Array = NDArray[np.float64]

# Those of pandas and Arrow, which most programs write.
MISSING = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "null", "NULL", "None"),
    *("<NA>", "#N/A", "#NA", "NaT"),
)
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_GROUPED = r"^[+-]?\d{1,3}(,\d{3})+(\.\d*)?$"
_DECIMAL_COMMA = r"^[+-]?\d*(\.\d{3})*,\d+([eE][+-]?\d+)?$"
_DECIMAL_POINT = r"^[+-]?\d*\.\d+([eE][+-]?\d+)?$"
# What --decimal ',' takes: points part thousands, and nothing else.
_WITH_COMMA = r"^[+-]?(\d*|[1-9]\d{0,2}(\.\d{3})+)(,\d*)?([eE][+-]?\d+)?$"
_LEADING_ZERO = r"^[+-]?0\d"
_TRUTH = r"^(?i:true|false)$"
_DATE = r"\d{4}-\d{2}-\d{2}"
_CLOCK = r"[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,9})?)?"
_ZONE = r"(Z|[+-]\d{2}:?\d{2})"
_DAY = 86_400.0  # seconds
_LARGEST = 1e150  # whose square is still a number


class Place(NamedTuple):
    """Where values stand, for messages.

    Attributes
    ----------
    source : str
        The file.
    column : str
    first_row : int
        Data rows before the first of these.
    delimiter : str
        Of a CSV file; "" elsewhere.
    """

    source: str
    column: str
    first_row: int = 0
    delimiter: str = ""

    def error(self, index: int, why: str) -> DataError:
        """One sentence with file, row and column."""
        row = self.first_row + index + 1
        return DataError(f"{self.source}, row {row}: column {self.column!r} {why}.")


@dataclass(frozen=True)
class Spelling:
    """How texts are read.

    Attributes
    ----------
    missing : tuple of str
        Texts that stand for nothing.
    decimal : str
        ``"."`` or ``","``.
    """

    missing: tuple[str, ...] = MISSING
    decimal: str = "."

    @property
    def codes(self) -> list[float]:
        """Numbers that stand for nothing, however they are written."""
        found = []
        for text in self.missing:
            with suppress(ValueError):
                found.append(float(text.replace(self.decimal, ".")))
        return [code for code in found if math.isfinite(code)]


def as_texts(values: Any, spelling: Spelling) -> Any:
    """A text column trimmed, with null for what is missing; other types as they are.

    Parameters
    ----------
    values : pyarrow.Array or ChunkedArray
        Of any type.
    spelling : Spelling
        How missing values are spelled.

    Returns
    -------
    pyarrow.Array
    """
    found = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(found, pa.ChunkedArray):  # no chunk at all
        found = pa.array([], found.type)
    if pa.types.is_dictionary(found.type):
        found = _decoded(found)
    if not is_text(found.type):
        return found
    trimmed = pc.utf8_trim_whitespace(found.cast(pa.large_string()))
    blank = pc.is_in(trimmed, value_set=pa.array(spelling.missing, pa.large_string()))
    return pc.if_else(blank, pa.scalar(None, pa.large_string()), trimmed)


def _decoded(found: Any) -> Any:
    """The values of a dictionary; of polars they are views, which Arrow cannot take."""
    known = found.dictionary
    if is_text(known.type):
        known = known.cast(pa.large_string())
    return known.take(found.indices)


def is_text(kind: Any) -> bool:
    """Whether a type of Arrow holds texts."""
    names = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pa.types, name)(kind) for name in names)


def is_number(kind: Any) -> bool:
    """Whether a type of Arrow holds numbers."""
    types = pa.types
    return bool(
        types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    )


def is_instant(kind: Any) -> bool:
    """Whether a type of Arrow holds dates or times."""
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


# Numbers


def numbers(values: Any, place: Place, spelling: Spelling) -> Array:
    """Values as float64, NaN where they are missing.

    Parameters
    ----------
    values : pyarrow.Array
        Of :func:`as_texts`.
    place : Place
        For errors.
    spelling : Spelling
        The decimal sign, and numbers that stand for nothing.

    Returns
    -------
    array, shape (rows,)
    """
    kind = values.type
    if is_text(kind):
        found = _parsed(values, place, spelling)
    elif is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        found = values.cast(pa.float64(), safe=False)
    else:
        raise place.error(0, f"must hold numbers, and is of the type {kind}")
    plain = found.to_numpy(zero_copy_only=False).astype(np.float64)
    plain[np.isin(plain, spelling.codes)] = np.nan
    infinite, large = np.isinf(plain), np.abs(plain) > _LARGEST
    if infinite.any():
        at = int(infinite.argmax())
        raise place.error(at, "must hold finite numbers, and this one is infinite")
    if large.any():
        at = int(large.argmax())
        raise place.error(
            at,
            f"must hold numbers of at most {_LARGEST:g} in size, as they are squared, "
            f"and this is {plain[at]:g}",
        )
    return plain


def merged_by_floats(values: Any, found: Array) -> bool:
    """Whether whole numbers beyond 2^53 differ that are the same as float64.

    Parameters
    ----------
    values : pyarrow.Array
        Of :func:`as_texts`.
    found : array, shape (rows,)
        What :func:`numbers` makes of them.

    Returns
    -------
    bool
    """
    known = found[~np.isnan(found)]
    if not len(known) or np.abs(known).max() < 2.0**53:
        return False
    is_whole = pa.types.is_integer(values.type) or (
        is_text(values.type) and first_not(values, r"^[+-]?\d+$") is None
    )
    count = pc.count_distinct(values, mode="only_valid").as_py()
    return bool(is_whole and count > len(np.unique(known)))


def _parsed(texts: Any, place: Place, spelling: Spelling) -> Any:
    other = "," if spelling.decimal == "." else "."
    if other == ",":
        with suppress(pa.ArrowInvalid):
            return texts.cast(pa.float64())  # most are as plain as that
        grouped = pc.match_substring_regex(texts, _GROUPED)
    else:
        grouped = pc.match_substring_regex(texts, _WITH_COMMA)
    plain = pc.if_else(grouped, pc.replace_substring(texts, other, ""), texts)
    if other == ".":
        plain = pc.replace_substring(pc.if_else(grouped, plain, "?"), ",", ".")
    _check(texts, plain, place, spelling)
    # Where the delimiter is one of the two, the other is the usual decimal sign.
    if place.delimiter and (place.delimiter == ",") == (other == "."):
        _check_sign(texts, other, place)
    return pc.replace_substring_regex(plain, r"^\+", "").cast(pa.float64())


def _check(texts: Any, plain: Any, place: Place, spelling: Spelling) -> None:
    at = first_not(plain, _NUMBER)
    if at is None:
        return
    value = texts[at].as_py()
    hint = ""
    if spelling.decimal == "." and _fits(value, _DECIMAL_COMMA):
        hint = ", with a decimal comma? Fit with --decimal ','"
    if spelling.decimal == "," and _fits(value, _DECIMAL_POINT):
        hint = ", with a decimal point? With --decimal ',' a point parts thousands"
    raise place.error(at, f"must hold numbers, and this is {value!r}{hint}")


def _check_sign(texts: Any, sign: str, place: Place) -> None:
    """Refuse what is thousands by the model, and may be decimals by the file."""
    at = int(pc.index(pc.match_substring(texts, sign), value=True).as_py())
    if at < 0:
        return
    name, value = {",": "comma", ".": "point"}[sign], texts[at].as_py()
    raise place.error(
        at,
        f"holds {value!r}, whose {name} may stand for decimals or thousands, as the "
        f"file is delimited by {place.delimiter!r}; remove it, or fit with the option "
        f"--decimal {sign!r}",
    )


def first_not(texts: Any, pattern: str) -> int | None:
    """The place of the first text that does not match; None if all do."""
    fits = pc.fill_null(pc.match_substring_regex(texts, pattern), True)
    at = pc.index(fits, value=False).as_py()
    return None if at < 0 else int(at)


def _fits(text: str, pattern: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(text), pattern).as_py())


def are_numbers(texts: Any, spelling: Spelling) -> bool:
    """Whether all texts are numbers, and not codes such as 007."""
    if pc.any(pc.match_substring_regex(texts, _LEADING_ZERO)).as_py():
        return False
    try:
        _parsed(texts, Place("", ""), spelling)
    except (DataError, pa.ArrowInvalid):
        return False
    return True


def first_odd(texts: Any) -> int | None:
    """The first text that is no number, or no time, where more than half are such."""
    for pattern in (_NUMBER, *_patterns()):
        fits = pc.match_substring_regex(texts, pattern)
        if 2 * (pc.sum(fits).as_py() or 0) > len(texts) - texts.null_count:
            return first_not(texts, pattern)
    return None


def have_other_decimals(texts: Any, spelling: Spelling) -> bool:
    """Whether all texts are numbers if the other sign is the decimal one, not else."""
    own = _DECIMAL_COMMA if spelling.decimal == "." else _DECIMAL_POINT
    either = f"({_NUMBER})|({_DECIMAL_COMMA})"
    some = pc.any(pc.match_substring_regex(texts, own)).as_py()
    return bool(some) and first_not(texts, either) is None


# Booleans


def are_truths(texts: Any) -> bool:
    """Whether all texts are true or false."""
    return first_not(texts, _TRUTH) is None


def truths(values: Any, place: Place) -> Array:
    """Values as 0 and 1, NaN where they are missing.

    Parameters
    ----------
    values : pyarrow.Array
        Of :func:`as_texts`: booleans, the numbers 0 and 1, or true and false.
    place : Place
        For errors.

    Returns
    -------
    array, shape (rows,)
    """
    kind = values.type
    if is_text(kind):
        at = first_not(values, r"^(?i:true|false|0|1)$")
        if at is not None:
            value = values[at].as_py()
            raise place.error(at, f"must hold true or false, and this is {value!r}")
        yes = pa.array(["true", "1"], pa.large_string())
        values = pc.if_else(
            pc.is_valid(values), pc.is_in(pc.utf8_lower(values), value_set=yes), None
        )
    elif not (is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise place.error(0, f"must hold true or false, and is of the type {kind}")
    found = numbers(values, place, Spelling())
    strange = ~(np.isnan(found) | (found == 0.0) | (found == 1.0))
    if strange.any():
        at = int(strange.argmax())
        raise place.error(at, f"must hold true or false, and this is {found[at]:g}")
    return found


# Times


class Times(NamedTuple):
    """Days since 1970, NaN where missing, and whether there was a zone."""

    days: Array
    has_zone: bool


def are_times(texts: Any) -> bool:
    """Whether all texts are dates, or times of one kind: with a zone or without."""
    bare, zoned = _patterns()
    return first_not(texts, bare) is None or first_not(texts, zoned) is None


def _patterns() -> tuple[str, str]:
    return f"^{_DATE}({_CLOCK})?$", f"^{_DATE}{_CLOCK}{_ZONE}$"


def times(values: Any, place: Place) -> Times:
    """Values as days since 1970.

    Parameters
    ----------
    values : pyarrow.Array
        Of :func:`as_texts`: dates, timestamps, or texts in the manner of ISO 8601.
    place : Place
        For errors.

    Returns
    -------
    Times
        Those with a zone in UTC.
    """
    kind = values.type
    if is_instant(kind):
        has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
        found = values.cast(pa.timestamp("us", kind.tz if has_zone else None), False)
    elif is_text(kind):
        has_zone = first_not(
            values, _patterns()[1]
        ) is None and values.null_count < len(values)
        at = None if has_zone else first_not(values, _patterns()[0])
        if at is not None:
            raise place.error(
                at,
                "must hold dates or times such as 2024-05-31 or 2024-05-31T12:00, "
                f"and this is {values[at].as_py()!r}",
            )
        found = _read_times(values, place, has_zone)
    elif pa.types.is_null(kind):
        return Times(np.full(len(values), np.nan), False)
    else:
        raise place.error(0, f"must hold dates or times, and is of the type {kind}")
    seconds = found.cast(pa.int64()).cast(pa.float64(), safe=False)
    days = seconds.to_numpy(zero_copy_only=False) / (1e6 * _DAY)
    return Times(days.astype(np.float64), bool(has_zone))


def _read_times(values: Any, place: Place, has_zone: bool) -> Any:
    goal = pa.timestamp("us", "UTC" if has_zone else None)
    # Arrow reads fractions of 3, 6 or 9 digits: make them 6.
    short = pc.replace_substring_regex(values, r"(\.\d{6})\d+", r"\1")
    for digits in range(1, 6):
        pattern = rf"(\.\d{{{digits}}})($|Z|[+-])"
        short = pc.replace_substring_regex(short, pattern, rf"\1{'0' * (6 - digits)}\2")
    try:
        return short.cast(goal)
    except pa.ArrowInvalid:
        for at, value in enumerate(short):
            try:
                value.cast(goal)
            except pa.ArrowInvalid as error:
                text = values[at].as_py()
                raise place.error(at, f"holds {text!r}, which is no time") from error
        raise


# Categories


def labels(values: Any, place: Place) -> Any:
    """Values as texts, null where they are missing: 1, 1.0 and "1" are the same.

    Parameters
    ----------
    values : pyarrow.Array
        Of :func:`as_texts`.
    place : Place
        For errors.

    Returns
    -------
    pyarrow.Array of large_string
    """
    kind = values.type
    if is_text(kind):
        return values
    if pa.types.is_floating(kind):
        plain = values.cast(pa.float64())
        plain = pc.if_else(pc.is_nan(plain), pa.scalar(None, pa.float64()), plain)
        whole = pc.equal(pc.floor(plain), plain)
        whole = pc.and_(whole, pc.less(pc.abs(plain), 2.0**53))
        short = pc.if_else(whole, plain, pa.scalar(0.0)).cast(pa.int64())
        texts = (short.cast(pa.large_string()), plain.cast(pa.large_string()))
        return pc.if_else(whole, *texts)
    if is_number(kind) or pa.types.is_boolean(kind) or is_instant(kind):
        return values.cast(pa.large_string())
    if pa.types.is_null(kind):
        return values.cast(pa.large_string())
    raise place.error(0, f"must hold categories, and is of the type {kind}")
