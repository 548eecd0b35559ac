"""What a column looks like is said, and nothing of columns that are what they seem."""

import warnings

import numpy as np
import pyarrow as pa
import pytest

from caveat.errors import CaveatWarning
from caveat.frames.suspecting import (
    look_like_dates,
    warn_of_codes,
    warn_of_numbers,
    warn_of_texts,
    warn_of_two_numbers,
)
from caveat.frames.values import Place

PLACE = Place("t.csv", "c")
RNG = np.random.default_rng(0)


def texts(values):
    return pa.array(values, pa.large_string())


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([None, "52%", "7.5 %", "-3%"], "row 2: column 'c' holds '52%', a number with"),
        (["$1,200.50", "$7", "-$3"], "a number with"),
        (["€ 5", "€ 12,50"], "a number with"),
        (["12 kg", "7kg"], "a number with"),
        (["USD 5", "USD 1,000"], "a number with"),
        (["1 200", "12 000,5"], "a number with"),
        (["1'200", "12'000"], "a number with"),
        (["(5.0)", "7.5"], "a number with"),
        (["−5.0", "7.5"], "a number with"),
        (["1.234.567", "-12.300.000", "7"], "a number with signs in or around it"),
        (["Ja", "Nein", "ja"], "'Ja' and 'ja', which differ in case only"),
        (["1", "2.5", "3", "?"], r"holds '\?' among numbers"),
    ],
)
def test_texts_that_may_be_something_else(values, told):
    with pytest.warns(CaveatWarning, match=told):
        warn_of_texts(texts(values), PLACE, is_untyped=True)


@pytest.mark.parametrize(
    "values",
    [
        ["P001", "P002"],
        ["row 0", "row 1"],
        ["01234", "99999"],
        ["12a", "12b"],
        ["10-20", "20-30"],
        ["v1.2", "v1.3"],
        ["1.2.3", "1.2.4"],
        ["Köln", "Zürich", None],
        ["31.05.2024", "01.06.2024"],
        [None, None],
        ["1", "2", "3"],  # codes of a table that has types: few of them
    ],
)
def test_texts_that_are_what_they_seem(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_texts(texts(values), PLACE, is_untyped=False)


@pytest.mark.parametrize(
    "values", [[str(n) for n in range(40)], [f"{n}.5" for n in range(40)]]
)
def test_numbers_as_texts_in_a_table_with_types(values):
    with pytest.warns(CaveatWarning, match="as the table has types"):
        warn_of_texts(texts(values), PLACE, is_untyped=False)


@pytest.mark.parametrize(
    "value",
    [
        *"31/5/24 31.05.2024 2024/05/31 2024-05-31 31-May-2024 31-05-2024".split(),
        *"12:30 2024-05 2024Q2 2024-W22 May-24".split(),
        *("May 2024", "Sept. 2024", "Fri, 31 May 2024 12:00:00 GMT"),
    ],
)
def test_dates_of_many_manners(value):
    assert look_like_dates(texts([value, "2024-01-01T12:00", None]))
    assert not look_like_dates(texts([value, "other"]))


@pytest.mark.parametrize("value", ["1999-13", "2024Q5", "1-24", "Mark-24", "0815-12"])
def test_codes_that_are_no_dates(value):
    assert not look_like_dates(texts([value]))


@pytest.mark.parametrize(
    "values",
    [
        [0.0, 1, 2, 3, 4, -999, -999, -999],  # of a scale of five
        [*range(30), 99, 99, 99, 98],  # does not know, does not say
        [1.5, 2.5, 3.5, *[-998.0] * 5, *[-999.0] * 3],
    ],
)
def test_codes_beside_few_numbers_and_beside_codes(values):
    with pytest.warns(CaveatWarning, match="far from all others"):
        warn_of_codes(np.array(values), PLACE)


@pytest.mark.parametrize(
    "values", [[1.0, 2, 99, 99, 99], [*range(100), 99, 99], [*range(0, 999, 90), 999]]
)
def test_numbers_that_are_near_others_are_no_codes(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_codes(np.array(values, dtype=float), PLACE)


def test_months_as_numbers():
    months = np.array([100 * year + m for year in (2021, 2022) for m in range(1, 13)])
    with pytest.warns(CaveatWarning, match="holds 202101, which looks like a date"):
        warn_of_numbers(months.astype(float), PLACE)


def test_numbers_that_stand_for_nothing():
    values = RNG.normal(size=60)
    values[[3, 7, 9]] = -999.0
    with pytest.warns(CaveatWarning, match="row 4: .* holds -999 in 3 rows, far"):
        warn_of_numbers(values, PLACE)


def test_numbers_that_are_dates():
    values = 20240100.0 + np.arange(1, 29)
    with pytest.warns(CaveatWarning, match="20240101, which looks like a date"):
        warn_of_numbers(values, PLACE)


@pytest.mark.parametrize(
    "values",
    [
        RNG.normal(size=60),
        np.arange(60.0) * 99.0,
        np.r_[np.arange(980.0, 999.0), [999.0] * 5],  # within reach of the others
        RNG.integers(20000000, 20999999, 60).astype(float),
        np.r_[np.zeros(50), [-999.0] * 5],  # of two numbers nobody knows
    ],
)
def test_numbers_that_are_what_they_seem(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_numbers(values, PLACE)


def test_a_target_of_two_numbers():
    with pytest.warns(CaveatWarning, match="two numbers only, 0 and 1.*--classify"):
        warn_of_two_numbers(np.arange(20.0) % 2, PLACE)
