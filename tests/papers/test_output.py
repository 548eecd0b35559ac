"""The files that a reproduction leaves behind."""

import math
from dataclasses import dataclass

import pytest
from matplotlib.figure import Figure

from caveat.papers.output import Output
from caveat.papers.page import markdown_table
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


@pytest.mark.parametrize(
    ("quick", "stem", "command"),
    [
        (False, "thing", "`caveat reproduce thing`,"),
        (True, "thing_quick", "`caveat reproduce thing --quick`,"),
    ],
)
def test_page_says_what_made_it(quick, stem, command, tmp_path):
    files = Output(tmp_path / "out", "thing", quick)
    page = files.write(["Title", "Text."], Figure())
    assert page.startswith("# Title\n\nMade by ") and page.endswith("\n\nText.\n")
    assert command in page and ("smoke test" in page) == quick
    assert (tmp_path / "out" / f"{stem}.md").read_text() == page
    assert (tmp_path / "out" / f"{stem}.png").exists()


def test_markdown_table():
    table = markdown_table(["a", "b"], [["1", "2"]])
    assert table == "| a | b |\n| --- | --- |\n| 1 | 2 |"
