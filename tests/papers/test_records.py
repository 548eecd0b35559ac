"""Records in files."""

import math
from dataclasses import dataclass

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
