"""Columns of whatever holds columns are the same columns."""

import datetime

import numpy as np
import pytest
import torch

from caveat.errors import InputTypeError, ShapeError
from caveat.reports.columns import as_column, as_table

ROWS = np.array([0, 2, 3])
PLAIN = {
    "size": [1.5, float("nan"), 2.5, -3.0],
    "kind": ["a", None, "b", "a"],
    "flag": [True, False, True, True],
    "year": [1999, 2001, 2003, 2020],
    "day": [datetime.date(2020, 1, k) for k in (1, 2, 3, 4)],
}


def frames():
    pandas = pytest.importorskip("pandas")
    yield PLAIN
    yield pandas.DataFrame(PLAIN)
    for name, make in (("pyarrow", "table"), ("polars", "DataFrame")):
        module = pytest.importorskip(name)
        yield getattr(module, make)(PLAIN)


def words_of(x):
    table = as_table(x, 4)
    found = {}
    for number, name in enumerate(table.names):
        column = as_column(name, table.take(number, ROWS))
        found[name] = [column.word(k) for k in range(len(ROWS))]
    return found


def test_all_kinds_of_tables_read_alike():
    for x in frames():
        found = words_of(x)
        assert found["size"] == ["1.5", "2.5", "−3"], type(x)
        assert found["kind"] == ["a", "b", "a"]
        assert found["flag"] == ["True", "True", "True"]
        assert found["year"] == ["1999", "2003", "2020"]
        assert found["day"] == ["2020-01-01", "2020-01-03", "2020-01-04"]


def test_missing_values_are_said_to_be():
    column = as_column("size", np.array(PLAIN["size"]))
    assert column.word(1) == "missing" and np.isnan(column.numbers[1])
    column = as_column("kind", np.array(PLAIN["kind"], dtype=object))
    assert column.word(1) == "missing" and column.numbers is None
    dates = np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")
    assert as_column("day", dates).word(1) == "missing"


def test_nullable_columns_of_pandas():
    pandas = pytest.importorskip("pandas")
    values = pandas.array([1, None, 3, 4], dtype="Int64")
    table = as_table(pandas.DataFrame({"n": values}), 4)
    column = as_column("n", table.take(0, np.arange(4)))
    assert [column.word(k) for k in range(4)] == ["1", "missing", "3", "4"]


def test_lists_as_values_are_not_taken_for_missing():
    pyarrow = pytest.importorskip("pyarrow")
    table = as_table(pyarrow.table({"l": [[1, 2], [3], [4, 5], None]}), 4)
    column = as_column("l", table.take(0, np.arange(4)))
    assert [column.word(k) for k in range(4)] == ["[1 2]", "[3]", "[4 5]", "missing"]


def test_names_of_rows_are_kept_unless_they_only_count():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3, 4]})
    assert as_table(frame, 4).row_names is None
    frame.index = list("wxyz")
    assert as_table(frame, 4).row_names[2] == "y"


def test_arrays_tensors_and_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    array = np.arange(12.0).reshape(4, 3)
    for x in (array, torch.from_numpy(array), array.tolist(), sparse.csr_array(array)):
        table = as_table(x, 4)
        assert table.names == ("column 0", "column 1", "column 2")
        assert table.take(1, ROWS).tolist() == [1.0, 7.0, 10.0]
    assert as_table(np.arange(4), 4).names == ("column 0",)


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        (np.zeros((3, 2)), ShapeError, "one row for each of the 4 predictions. Got 3"),
        (np.zeros((4, 2, 2)), ShapeError, "leave x out for images"),
        ({"a": [1, 2, 3, 4], "b": [1]}, ShapeError, r"lengths \[1, 4\]"),
        ({"a": np.zeros((4, 2))}, ShapeError, "'a' of x must have one value per row"),
        (3.0, InputTypeError, "x must be a data frame"),
        ({}, ShapeError, "columns of one length"),
    ],
)
def test_what_is_no_table_is_refused(x, error, words):
    with pytest.raises(error, match=words):
        as_table(x, 4)
