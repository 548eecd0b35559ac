"""Features of rows, and sentences about rows that have none."""

import numpy as np
import pyarrow as pa
import pytest

from caveat.errors import CaveatWarning, DataError, ParameterError
from caveat.frames import Encoder
from caveat.frames.values import Place, Spelling, as_texts, numbers
from tests.frames.data import mixed, quick_model

MODEL = quick_model()
FRAME = mixed(20, seed=1)
ROW = FRAME.drop(columns=["name", "y", "label"]).iloc[0].to_dict()


def features(row, **settings):
    names = MODEL.schema.features
    found = MODEL.matrix([row], **settings)[0]
    return dict(zip(names, found.tolist(), strict=True))


def test_features_are_what_they_say():
    row = ROW | {
        "size": 1.5,
        "kind": "a",
        "zip": "01",
        "flag": True,
        "when": "2020-01-11T06:00",
        "gap": None,
        "who": None,
    }
    found = features(row)
    assert found["size"] == 1.5 and found["kind=a"] == 1.0 and found["kind=b"] == 0.0
    assert found["zip=01"] == 1.0 and found["flag"] == 1.0
    assert found["when"] == 18272.25
    assert found["when (day, sin)"] == pytest.approx(1.0)
    assert found["gap is missing"] == 1.0 and found["who is missing"] == 1.0
    assert found["who=x"] == found["who=y"] == 0.0
    gap = next(c for c in MODEL.schema.columns if c.name == "gap")
    assert found["gap"] == gap.fill == np.nanmedian(mixed()["gap"])


@pytest.mark.parametrize(
    ("name", "value", "same"),
    [
        ("size", "1.5", 1.5),
        ("size", " +1,234.5 ", 1234.5),
        ("size", True, 1.0),
        ("flag", "TRUE", True),
        ("flag", 1, True),
        ("kind", " a ", "a"),
        ("when", "2020-01-11 06:00:00", "2020-01-11T06:00:00.0"),
        ("who", "NA", None),
        ("gap", "nan", None),
        ("gap", float("nan"), None),
    ],
    ids=str,
)
def test_the_same_in_other_clothes(name, value, same):
    assert features(ROW | {name: value}) == features(ROW | {name: same})


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("size", "much", "must hold numbers, and this is 'much'"),
        ("size", "1,5", "decimal comma"),
        ("size", float("inf"), "infinite"),
        ("size", 10**400, "infinite"),
        ("flag", 2, "true or false, and this is 2"),
        ("flag", "maybe", "true or false, and this is 'maybe'"),
        ("when", "31.12.2020", "dates or times"),
        ("when", "2020-02-31", "no time"),
        ("when", 5, "of the type"),
        ("when", "2020-01-01T00:00Z", "without a zone"),
        ("kind", "d", "'d', which fit has not seen"),
        ("zip", "1", "has not seen"),
    ],
    ids=str,
)
def test_a_wrong_value_is_told_with_its_place(name, value, why):
    rows = [ROW, ROW, ROW | {name: value}]
    if not isinstance(value, str) or value.endswith("Z"):
        rows = rows[2:]  # beside texts it would be one, and of another kind
    with pytest.raises(DataError, match=rf"the table, row \d: column '{name}'.*{why}"):
        MODEL.matrix(rows)


@pytest.mark.parametrize(
    ("decimal", "delimiter", "text", "number"),
    [
        (".", ",", "1,500", 1500.0),
        (".", "", "1,500", 1500.0),
        (".", ";", "1500", 1500.0),
        (".", ";", "1,500", None),  # with three decimals, as many programs write
        (",", ";", "1.500", 1500.0),
        (",", ";", "-1.234,5e1", -12345.0),
        (",", ";", "1.5", None),
        (",", ";", "0.125", None),
        (",", ",", "1,5", 1.5),
        (",", ",", "1.500", None),
    ],
)
def test_a_point_or_comma_is_not_guessed(decimal, delimiter, text, number):
    place = Place("f.csv", "x", 100, delimiter)
    values = pa.array(["7", None, text], pa.large_string())
    if number is None:
        with pytest.raises(DataError, match=r"f\.csv, row 103: .*(point|comma)"):
            numbers(values, place, Spelling(decimal=decimal))
    else:
        found = numbers(values, place, Spelling(decimal=decimal))
        assert found[[0, 2]].tolist() == [7.0, number] and np.isnan(found[1])


def test_rows_are_counted_from_the_first_of_the_file():
    encoder = Encoder(MODEL.schema)
    batch = pa.Table.from_pylist([ROW, ROW | {"kind": "new"}])
    with pytest.raises(DataError, match=r"f\.csv, row 102: column 'kind'"):
        encoder.matrix(batch, "f.csv", first_row=100)


def test_an_unseen_category_may_be_missing():
    with pytest.warns(CaveatWarning, match="1 row: 'who' had a category that fit"):
        found = features(ROW | {"who": "z"}, unseen="missing")
    assert found["who is missing"] == 1.0
    with pytest.raises(ParameterError, match="unseen must be"):
        features(ROW, unseen="ignore")


def test_what_was_made_up_is_counted():
    encoder = Encoder(MODEL.schema, unseen="missing")
    rows = [ROW | {"size": None, "kind": "new"}, ROW | {"flag": None, "kind": None}]
    encoder.matrix(pa.Table.from_pylist(rows), "t")
    told = dict(encoder.notes)
    assert sum(told.values()) == 4 and len(told) == 4
    assert any("median" in what for what in told)


def test_columns_in_any_order_with_others_between():
    found = FRAME[FRAME.columns[::-1]].assign(more=3)
    assert np.array_equal(MODEL.matrix(found), MODEL.matrix(FRAME))


def test_columns_that_are_not_there():
    with pytest.raises(DataError, match="the columns 'size', 'zip'"):
        MODEL.matrix(FRAME.drop(columns=["size", "zip"]))


@pytest.mark.parametrize("kind", ["int8", "uint64", "float32", "decimal"])
def test_numbers_of_all_types(kind):
    made = {"decimal": pa.decimal128(30, 2)}.get(kind) or kind
    column = pa.array([3], pa.int64()).cast(made)
    table = pa.Table.from_pylist([ROW]).drop_columns("size")
    found = MODEL.matrix(table.append_column("size", column))
    assert np.array_equal(found, MODEL.matrix([ROW | {"size": 3.0}]))


def test_categories_of_all_types():
    table = pa.Table.from_pylist([ROW | {"kind": "a"}])
    as_is = MODEL.matrix(table)
    place = table.schema.get_field_index("kind")
    for other in (pa.dictionary(pa.int8(), pa.string()), pa.large_string()):
        own = table.set_column(place, "kind", table["kind"].cast(other))
        assert np.array_equal(MODEL.matrix(own), as_is)


def test_numbers_as_categories_are_the_same_in_all_types():
    rows = [{"code": i % 3 + 1, "y": float(i % 3) + 0.1 * i} for i in range(30)]
    model = quick_model(rows, drop=(), categories=["code"])
    assert model.schema.columns[0].categories == ("1", "2", "3")
    for value in (1, 1.0, "1"):
        assert model.matrix([{"code": value}]).tolist() == [[1.0, 0.0, 0.0]]


def test_a_dictionary_of_views_as_polars_has_them():
    views = pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0]), pa.array(["a", "b"], pa.string_view())
    )
    assert as_texts(views, Spelling()).to_pylist() == ["b", None, "a"]
