"""Kinds of columns, which of them are of no use, and what is said of it."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from caveat.errors import CaveatWarning, DataError, ParameterError
from caveat.estimators import BayesianDropoutRegression
from caveat.frames import FrameModel, as_source, open_table
from caveat.frames.learning import Origin, Wishes, learn_columns, learn_target
from caveat.frames.values import Spelling
from tests.frames.data import mixed, quick_model


def schema_of(table, *, origin=None, spelling=None, **wishes):
    """Without fitting anything."""
    rows = as_source(table).whole()
    spelling, origin = spelling or Spelling(), origin or Origin("t.csv")
    target, _, has = learn_target(
        rows, "y", classify=False, origin=origin, spelling=spelling
    )
    own = Wishes(**wishes)
    return learn_columns(rows.filter(pa.array(has)), target, own, origin, spelling)


def texts(n_rows=30, **columns):
    """As a CSV file has them."""
    found = {"y": [str(i) for i in range(n_rows)]}
    for name, values in columns.items():
        found[name] = [values[i % len(values)] for i in range(n_rows)]
    return pa.table(found)


UNTYPED = Origin("t.csv", is_untyped=True)


def test_all_kinds_of_a_typed_table():
    schema = quick_model().schema
    kinds = {c.name: c.kind for c in schema.columns}
    assert kinds == {
        "size": "number",
        "kind": "category",
        "zip": "category",
        "flag": "boolean",
        "when": "time",
        "whole": "number",
        "gap": "number",
        "who": "category",
    }
    assert [d.name for d in schema.dropped] == ["name", "label"]
    assert "identifier-like" in schema.dropped[0].reason
    when = next(c for c in schema.columns if c.name == "when")
    assert when.parts == ("days", "day", "week", "year")
    assert json.loads(json.dumps(schema.plain()))["columns"][0]["name"] == "size"


def test_a_csv_file_has_the_same_schema(tmp_path):
    frame = mixed()
    frame.to_csv(tmp_path / "t.csv", index=False)
    with open_table(tmp_path / "t.csv") as source:
        rows = source.whole()
    origin, spelling = Origin("t.csv", is_untyped=True), Spelling()
    found = []
    for table, own in ((rows, origin), (as_source(frame).whole(), Origin("t.csv"))):
        target, y, _ = learn_target(
            table, "y", classify=False, origin=own, spelling=spelling
        )
        found.append((learn_columns(table, target, Wishes(), own, spelling), y))
    assert found[0][0] == found[1][0]
    assert np.array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2", "3"], "number"),
        (["1", "2.5", "-3e4", "+7", " 4 "], "number"),
        (["1", "NA", "n/a", "NaN", "null", "", "<NA>", "2"], "number"),
        (["1,234", "12", "1,234,567.5"], "number"),
        (["01", "02", "10"], "category"),
        (["0", "0.5", "-0.25"], "number"),
        (["true", "False", "TRUE", ""], "boolean"),
        (["yes", "no"], "category"),
        (["2024-01-31", "2023-02-01"], "time"),
        (["2024-01-31 12:00", "2023-02-01T01:02:03.5"], "time"),
        (["2024-01-31T12:00Z", "2023-02-01T01:02:03+02:00"], "time"),
        (["2024-01-31", "soon"], "category"),
        (["1", "two", "three"], "category"),
        (["a", "b", "NA"], "category"),
    ],
    ids=str,
)
def test_kinds_of_texts(values, kind):
    (column,) = schema_of(texts(x=values), origin=UNTYPED).columns
    assert column.kind == kind
    assert bool(column.n_missing) == any(v in ("NA", "", "null") for v in values)


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ({"x": ["5"]}, "constant, 5"),
        ({"x": ["a"]}, "constant, 'a'"),
        ({"x": ["true"]}, "constant, 1"),
        ({"x": ["", "NA"]}, "empty"),
        ({"x": [f"u{i}" for i in range(30)]}, "30 different texts"),
        ({"x": [str(i) for i in range(30)]}, "counts the rows"),
        ({"user_id": [str(7 * i) for i in range(30)]}, "30 different numbers"),
        ({"x": [str(10**20 + 10**6 * i) for i in range(30)]}, "30 different"),
        ({"x": [f"{i + 1}/1/2020" for i in range(30)]}, "looks like dates"),
    ],
    ids=str,
)
def test_columns_of_no_use(column, reason):
    schema = schema_of(texts(good=["1.5", "2.5"], **column), origin=UNTYPED)
    (dropped,) = schema.dropped
    assert reason in dropped.reason
    assert any(reason in line for line in schema.lines())


def test_numbers_that_only_look_like_identifiers_stay():
    values = [str(1000 - 3 * i) for i in range(30)]
    assert schema_of(texts(x=values), origin=UNTYPED).needed == ("x",)


def test_what_the_user_says_counts():
    table = texts(x=[str(i) for i in range(30)], id=["1", "2"], other=["7", "8"])
    schema = schema_of(
        table,
        origin=UNTYPED,
        use=("x",),
        drop=("other",),
        categories=("id",),
        units={"x": "mm"},
    )
    assert {c.name: (c.kind, c.unit) for c in schema.columns} == {
        "x": ("number", "mm"),
        "id": ("category", None),
    }
    assert schema.dropped[0].reason == "as asked"


def test_units_of_arrow_are_kept():
    field = pa.field("x", pa.float64(), metadata={"unit": "kg"})
    y = pa.field("y", pa.float64(), metadata={"units": "m"})
    table = pa.table([[1.0, 2.0, 5.0], [1.0, 2.0, 3.0]], pa.schema([field, y]))
    model = FrameModel.fit(table, target="y", preset="fast")
    assert model.schema.columns[0].unit == "kg" and model.schema.target.unit == "m"


def test_a_gap_in_a_constant_is_news():
    (column,) = schema_of(texts(x=["3", ""]), origin=UNTYPED).columns
    assert column.features == ("x", "x is missing")


def test_rare_categories_share_a_feature():
    values = [f"c{i}" for i in range(40)] * 3
    (column,) = schema_of(texts(120, x=values), origin=UNTYPED).columns
    assert len(column.categories) == 40 and column.n_shown == 29
    assert len(column.features) == 30 and column.features[-1] == "x=(other)"


def test_types_that_are_no_use():
    table = pa.table({"y": [1.0, 2.0], "x": [[1], [2]], "z": [3.0, 5.0]})
    (dropped,) = schema_of(table).dropped
    assert dropped.reason == "of the type list<item: int64>"


@pytest.mark.parametrize(
    ("table", "settings", "why"),
    [
        ({"a": [1.0, 2.0]}, {}, "must have the target column 'y'"),
        ({"y": [1.0, 2.0]}, {}, "must have a column to predict"),
        ({"y": [1.0, 2.0], "a": [1, 1]}, {}, "'a' is constant, 1"),
        ({"y": [None, None], "a": [1, 2]}, {}, "holds no values"),
        ({"y": [1.0, None], "a": [1, 2]}, {}, "at least 2 rows"),
        ({"y": [3.0, 3.0], "a": [1, 2]}, {}, "different numbers. All rows hold 3.0"),
        ({"y": [1.0, np.inf], "a": [1, 2]}, {}, "row 2: column 'y'.*infinite"),
        ({"y": ["p", "q"], "a": [1, 2]}, {}, "row 1: column 'y'.*classify"),
        ({"y": ["1", "2", "x"], "a": [1, 2, 3]}, {}, "row 3: column 'y'.*text 'x'"),
        ({"y": [1.0, 1e200], "a": [1, 2]}, {}, r"row 2: column 'y'.*at most 1e\+150"),
        ({"y": ["p", "p"], "a": [1, 2]}, {"classify": True}, "two classes"),
        ({"y": [0.5, 1.0], "a": [1, 2]}, {"classify": True}, "this is 0.5"),
        ({"y": [[1], [2]], "a": [1, 2]}, {}, "numbers or labels"),
    ],
    ids=str,
)
def test_tables_that_cannot_be_fitted(table, settings, why):
    with pytest.raises(DataError, match=why):
        FrameModel.fit(table, target="y", **settings)


def test_wishes_that_cannot_be_met():
    table = {"y": [1.0, 2.0], "a": [1.0, 2.0]}
    with pytest.raises(ParameterError, match="no column 'b'"):
        FrameModel.fit(table, target="y", drop=["b"])
    with pytest.raises(ParameterError, match="cannot be dropped"):
        FrameModel.fit(table, target="y", drop=["y"])
    with pytest.raises(ParameterError, match="decimal must be"):
        FrameModel.fit(table, target="y", decimal=";")
    with pytest.raises(DataError, match="different names"):
        twice = pa.Table.from_arrays([[1.0, 2.0]] * 3, ["y", "a", "a"])
        FrameModel.fit(twice, target="y")


def test_a_comma_is_not_guessed():
    with pytest.raises(DataError, match=r"row 1: column 'x' holds '0,5'.*--decimal"):
        schema_of(texts(x=["0,5", "1,25"]), origin=UNTYPED)
    semicolons = Origin("t.csv", is_untyped=True, delimiter=";")
    with pytest.raises(DataError, match="decimals or thousands"):
        schema_of(texts(x=["1,234", "5,678"]), origin=semicolons)
    with pytest.raises(DataError, match=r"row 1: column 'x' holds '0.5'.*--decimal"):
        schema_of(texts(x=["0.5", "2"]), origin=UNTYPED, spelling=Spelling(decimal=","))
    codes = schema_of(texts(x=["0,5", "1,25"]), origin=UNTYPED, categories=["x"])
    assert codes.columns[0].kind == "category"
    own = schema_of(
        texts(x=["0,5", "1.234,25"]),
        origin=semicolons,
        spelling=Spelling(decimal=","),
    )
    assert own.columns[0].fill == pytest.approx((0.5 + 1234.25) / 2)


@pytest.mark.parametrize(
    ("values", "odd", "says"),
    [
        (["1", "2.5", "-3", "?"], "?", True),
        (["2024-05-01", "unknown", "2024-06-01"], "unknown", True),
        (["12", "14a", "b", "c"], "14a", False),  # half of them or fewer
        (["x", "y"], "x", False),
        (["01", "02"], "01", False),
    ],
    ids=str,
)
def test_a_single_odd_value_is_named(values, odd, says, recwarn):
    schema_of(texts(x=values), origin=UNTYPED)
    told = [str(w.message) for w in recwarn]
    row = values.index(odd) + 1
    assert len(told) == says
    if says:
        assert told[0].startswith(f"t.csv, row {row}: column 'x' holds '{odd}' among")
        assert f"--missing '{odd}'" in told[0]
        recwarn.clear()
        schema_of(texts(x=values), origin=UNTYPED, categories=["x"])
        schema_of(texts(x=values), origin=UNTYPED, spelling=Spelling(("", odd)))
        assert not recwarn


def test_rows_without_a_target_are_left_out_and_counted():
    frame = pd.DataFrame({"y": [1.0, None, 2.0, 4.0], "a": [1.0, 9.0, 3.0, 4.0]})
    model = FrameModel.fit(frame, target="y", preset="fast")
    assert model.schema.n_rows == 3 and model.schema.target.n_missing == 1
    assert model.schema.columns[0].fill == 3.0
    assert "left out: 1 rows without a target" in model.schema.lines()


BIG = [str(2**53 + i) for i in range(30)]


def test_whole_numbers_that_floats_merge_are_named():
    """2^53 and 2^53 + 1 are one float64: as numbers they would be mixed up."""
    for values in (BIG, BIG[:3]):
        schema = schema_of(texts(a=["1", "2"], big=values), origin=UNTYPED)
        [dropped] = schema.dropped
        assert dropped.name == "big" and "beyond 2^53" in dropped.reason
        typed = pa.table({"y": range(30), "a": [1, 2] * 15, "big": map(int, BIG)})
        assert schema_of(typed).dropped[0].reason == dropped.reason
    codes = texts(a=["1", "2"], big=BIG[:3])
    kept = schema_of(codes, origin=UNTYPED, categories=("big",))
    assert set(kept.columns[1].categories) == set(BIG[:3])


def test_a_target_that_floats_merge():
    table, own = pa.table({"y": BIG}), {"origin": UNTYPED, "spelling": Spelling()}
    with pytest.raises(DataError, match=r"row 28: .* beyond 2\^53.*subtract"):
        learn_target(table, "y", classify=False, **own)
    target, labels, _ = learn_target(table, "y", classify=True, **own)
    assert target.kind == "text" and labels.tolist() == BIG


@pytest.mark.parametrize("style", ["%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d", "%m/%d/%y"])
def test_dates_in_other_styles_are_never_categories_in_silence(style):
    """However few there are: a new date would be an unseen category."""
    days = pd.date_range("2024-01-01", periods=4).strftime(style).tolist()
    schema = schema_of(texts(a=["1", "2"], day=days), origin=UNTYPED)
    assert "looks like dates" in schema.dropped[0].reason
    kept = schema_of(texts(a=["1", "2"], day=days), origin=UNTYPED, use=("day",))
    assert kept.columns[1].kind == "category"
    versions = texts(a=["1", "2"], v=["1.2.3", "10.0.0.1"])
    assert not schema_of(versions, origin=UNTYPED).dropped


def test_texts_of_a_table_with_types_may_be_times():
    """JSON has none."""
    rows = [{"when": f"2024-03-{1 + i % 28:02d}", "y": float(i % 7)} for i in range(60)]
    model = FrameModel.fit(
        rows, target="y", estimator=BayesianDropoutRegression(0.1, drop_to="mean")
    )
    assert [column.kind for column in model.schema.columns] == ["time"]


def column_of(schema, name):
    return next(c for c in schema.columns if c.name == name)


@pytest.mark.parametrize("untyped", [True, False])
def test_a_code_for_nothing_is_one_however_it_is_written(untyped):
    values = np.where(np.arange(30) % 3 == 0, -999.0, np.arange(30))
    if untyped:
        table, origin = texts(a=[str(value) for value in values]), UNTYPED  # -999.0
    else:
        table, origin = pa.table({"y": range(30), "a": values}), None
    spelling = Spelling(missing=(*Spelling().missing, "-999"))
    found = schema_of(table, origin=origin, spelling=spelling)
    assert column_of(found, "a").n_missing == 10
    assert column_of(found, "a").fill > 0


@pytest.mark.filterwarnings("error")
def test_a_code_for_nothing_in_the_target_is_told():
    y = np.random.default_rng(0).normal(size=30)
    y[[3, 7, 9]] = -999.0
    table = {"y": y, "a": [1.5, 2.5] * 15}
    with pytest.warns(CaveatWarning, match="row 4: column 'y' holds -999 in 3 rows"):
        schema_of(table)
    missing = Spelling(missing=("-999",))
    target, own, _ = learn_target(
        as_source(table).whole(),
        "y",
        classify=False,
        origin=Origin("t.csv"),
        spelling=missing,
    )
    assert len(own) == 27 and target.n_missing == 3


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (["5.1%", "7%"], "write plain numbers, without signs in or around them"),
        (["$1,200.50", "$7"], "write plain numbers"),
        (["1.234.567", "900.000"], "write plain numbers"),
        (["kg", "5.1", "7", "8"], "this is the text 'kg'; mend it, or if it stands"),
        (["yes", "no"], "add --classify .classify=True. for labels"),
        (["2024-05-31", "2024-06-01"], "add --classify .classify=True. for labels"),
    ],
)
def test_a_target_that_is_no_number_has_the_right_remedy(values, remedy):
    with pytest.raises(DataError, match=remedy):
        schema_of(texts(a=["1", "2"], y=values), origin=UNTYPED)
