"""Records in files."""

import math
from dataclasses import dataclass

import pytest

from caveat.errors import DataError
from caveat.papers.records import read_records, write_records


@dataclass(frozen=True)
class Row:
    name: str
    count: int
    value: float


def test_records_survive_the_file(tmp_path):
    path = tmp_path / "deep" / "rows.csv"
    rows = [Row("a, b", 1, 0.5), Row("c", 2, -1e-9)]
    write_records(path, [Row("before", 0, 0.0)])
    write_records(path, rows)
    assert read_records(path, Row) == rows
    assert [p.name for p in path.parent.iterdir()] == ["rows.csv"]
    write_records(path, [Row("d", 3, math.nan)])
    assert math.isnan(read_records(path, Row)[0].value)


def test_no_file_has_no_records(tmp_path):
    assert read_records(tmp_path / "none.csv", Row) == []


def test_a_file_of_another_version_is_not_taken_for_ours(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("name,epochs\na,3\n")
    with pytest.raises(DataError, match="lacks count, value, so another version"):
        read_records(path, Row)
    path.write_text("")
    with pytest.raises(DataError, match="lacks name, count, value"):
        read_records(path, Row)


def test_a_column_with_a_default_may_be_absent(tmp_path):
    @dataclass(frozen=True)
    class Wider(Row):
        more: float = 7.0

    path = tmp_path / "rows.csv"
    write_records(path, [Row("a", 1, 0.5)])
    assert read_records(path, Wider) == [Wider("a", 1, 0.5)]
