"""Columns that look like something other than what they are taken for.

A column of prices with a currency sign, of dates as one country writes them, or of
numbers in which -999 stands for nothing can be read, but hardly as it was meant. What
it is taken for stays as it is, and is said.
"""

import re
import warnings
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from caveat.errors import CaveatWarning
from caveat.frames.values import (
    Place,
    Spelling,
    are_numbers,
    are_times,
    first_not,
    first_odd,
)

Array = NDArray[np.float64]

_SEVERAL = 10  # different texts from which they are hardly codes
_MOST = 1000  # different texts that are looked at
_AGAIN = 3  # rows in which a number stands for nothing
_SENTINELS = (99.0, 999.0, 9999.0, 99999.0, 999999.0)
_NEXT_TO, _MOST_CODES = 10.0, 3  # -998 beside -999 is a code, too
_FEWEST = 4  # different numbers among which one may be far from the others
_MONTH = (
    "jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|"
    "sept?(ember)?|oct(ober)?|nov(ember)?|dec(ember)?"
)
_DATES = (
    # 31/5/24, 31.05.2024, 2024/05/31, 2024-05-31, 31-May-2024, May 31, 2024; and 12:30
    r"^((\d{1,2}/\d{1,2}/(\d{2}|\d{4})|\d{1,2}[.-]\d{1,2}[.-]\d{4}|"
    r"\d{4}[/.-]\d{1,2}[/.-]\d{1,2}|\d{1,2}[ -]\pL{3,9}[ -]\d{2,4}|"
    r"\pL{3,9} \d{1,2},? \d{4})([ T].*)?|\d{1,2}:\d{2}(:\d{2})?|"
    # 2024-05, 2024Q2, 2024-W22; May 2024, May-24; Fri, 31 May 2024 12:00:00 GMT
    r"(19|20)\d{2}-(0[1-9]|1[0-2])|(19|20)\d{2}[ -]?Q[1-4]|(19|20)\d{2}-?W[0-5]\d|"
    rf"(?i:{_MONTH})\.?([ -]|, )((19|20)\d\d|\d\d)|"
    r"\pL{2,9}\.?, \d{1,2}[ -]\pL{3,9}[ -]\d{2,4}([ T].*)?)$"
)
_POINTS = re.compile(r"^[+-]?\d{1,3}(\.\d{3})*$")  # 1.234.567
# Something, a number with its thousands apart, something: $1,200.50 or (12 %).
_DRESSED = re.compile(
    r"^(?P<before>[^\w.,]*|[A-Z]{3}\s)"  # a currency; "house 5" is a name
    r"(?P<number>\d{1,3}([ '’\u00a0\u202f]\d{3})+([.,]\d+)?|\d[\d.,]*)"
    r"(?P<after>\D*)$"
)
_SIGNS = " +-−()\u00a0\u202f"  # around a number, which change from row to row


def look_like_dates(texts: Any) -> bool:
    """Whether all texts are dates or times, in whatever manner."""
    return first_not(texts, _DATES) is None


def warn_of_texts(texts: Any, place: Place, *, is_untyped: bool) -> None:
    """Warn of texts that may be meant as numbers or times, or as fewer categories.

    Parameters
    ----------
    texts : pyarrow.Array
        Of ``as_texts``; they are taken as categories.
    place : Place
        Where they stand.
    is_untyped : bool
        Whether kinds were found out from texts, as in a CSV file.
    """
    different = pc.unique(texts.drop_null()).slice(0, _MOST).to_pylist()
    if not different or look_like_dates(texts):  # which is said elsewhere
        return
    first = int(pc.index(texts.is_valid(), value=True).as_py())
    at = first_odd(texts) if is_untyped else None
    if at is not None:
        text, name = texts[at].as_py(), place.column
        why = (
            f"holds {text!r} among numbers or times, so that all of it is taken as "
            f"texts. Mend it; or, if it stands for nothing, pass --missing {text!r}; "
            f"for codes, --category {name!r}"
        )
        _warn(place, at, why)
    elif are_dressed(different):
        why = (
            f"holds {different[0]!r}, a number with signs in or around it, so that "
            f"all of it is taken as texts. Write plain numbers"
        )
        _warn(place, first, f"{why}; for codes, {_category(place)}")
    elif len(different) >= _SEVERAL and not is_untyped and _are_typed_wrong(texts):
        why = (
            f"holds texts such as {different[0]!r}, which are taken as categories, as "
            f"the table has types. Make numbers or times of them"
        )
        _warn(place, first, f"{why}; for codes, {_category(place)}")
    else:
        _warn_of_case(different, place)


def warn_of_numbers(values: Array, place: Place) -> None:
    """Warn of numbers that may stand for dates, or for nothing.

    Parameters
    ----------
    values : array, shape (rows,)
        NaN where they are missing.
    place : Place
        Where they stand.
    """
    known = values[~np.isnan(values)]
    different = np.unique(known)
    if len(different) >= _SEVERAL and _are_days(different):
        why = (
            f"holds {known[0]:.0f}, which looks like a date and is taken as a number; "
            f"write it as 2024-05-31"
        )
        _warn(place, int(np.argmax(~np.isnan(values))), why)
        return
    warn_of_codes(values, place)


def warn_of_codes(values: Array, place: Place) -> None:
    """Warn of a number such as -999 that is far from all others.

    Parameters
    ----------
    values : array, shape (rows,)
        NaN where they are missing.
    place : Place
        Where they stand.
    """
    different, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if len(different) < _FEWEST:
        return
    for end in (0, -1):
        value, count = float(different[end]), int(counts[end])
        others = different[np.abs(different - value) >= _NEXT_TO]
        if abs(value) not in _SENTINELS or count < _AGAIN or len(others) < 2:
            continue
        if len(different) - len(others) > _MOST_CODES:
            continue
        if float(np.abs(others - value).min()) > float(np.ptp(others)):
            why = (
                f"holds {value:g} in {count} rows, far from all others. If it stands "
                f"for nothing, pass --missing {value:g} (missing=['{value:g}']) or "
                f"leave it empty"
            )
            _warn(place, int(np.argmax(values == value)), why)


def warn_of_two_numbers(y: Array, place: Place) -> None:
    """Warn of the target of a regression that holds two numbers only.

    Parameters
    ----------
    y : array, shape (rows,)
        The target.
    place : Place
        Where it stands.
    """
    different = np.unique(y)
    if len(different) == 2 and len(y) > _SEVERAL:
        warnings.warn(
            f"{place.source}: the target {place.column!r} holds two numbers only, "
            f"{different[0]:g} and {different[1]:g}. If they are labels, add "
            f"--classify (classify=True).",
            CaveatWarning,
            stacklevel=4,
        )


def are_dressed(texts: list[str]) -> bool:
    """Whether all are numbers with the same around them, or with points for thousands.

    P001 is a code, and none.

    Parameters
    ----------
    texts : list of str
        Different ones.

    Returns
    -------
    bool
    """
    if all(map(_POINTS.match, texts)) and any(text.count(".") > 1 for text in texts):
        return True
    found = [_DRESSED.match(text) for text in texts]
    if not texts or None in found:
        return False
    around = {(m["before"].strip(_SIGNS), m["after"].strip(_SIGNS)) for m in found if m}
    if len(around) > 1:
        return False
    plain = {(m["before"] + m["after"]).strip("+-") for m in found if m}
    parted = any(not re.fullmatch(r"[\d.,]+", m["number"]) for m in found if m)
    return parted or plain != {""}


def _are_typed_wrong(texts: Any) -> bool:
    return are_numbers(texts, Spelling()) or are_times(texts)


def _are_days(different: Array) -> bool:
    """Whether all are whole numbers such as 20240531, or 202405."""
    if different[0] >= 190001 and different[-1] <= 210012:
        different = 100 * different + 1
    if different[0] < 19000101 or different[-1] > 21001231:
        return False
    month, day = different // 100 % 100, different % 100
    is_day = (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return bool((is_day & (different == np.rint(different))).all())


def _warn_of_case(different: list[str], place: Place) -> None:
    seen: dict[str, str] = {}
    for text in different:
        other = seen.setdefault(text.casefold(), text)
        if other != text:
            why = (
                f"holds {other!r} and {text!r}, which differ in case only and are two "
                f"categories; if they are one, write them alike"
            )
            _warn(place, None, why)
            return


def _category(place: Place) -> str:
    return f"--category {place.column!r} (categories=[{place.column!r}])"


def _warn(place: Place, index: int | None, why: str) -> None:
    where = "" if index is None else f", row {place.first_row + index + 1}"
    warnings.warn(
        f"{place.source}{where}: column {place.column!r} {why}.",
        CaveatWarning,
        stacklevel=6,
    )
