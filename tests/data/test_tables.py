"""Tables with a header, or an error that names the file."""

from pathlib import Path

import pytest

from caveat.data.tables import numbers, read_rows
from caveat.errors import DataError


def test_rows_and_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('a;b\n1;"x;y"\n2.5;z\n')
    rows = read_rows(path, ["a"], delimiter=";")
    assert rows == [{"a": "1", "b": "x;y"}, {"a": "2.5", "b": "z"}]
    assert numbers(rows, "a").tolist() == [1, 2.5]


@pytest.mark.parametrize("text", ["", "a\n1\n", "a,b\n1\n", "a,b\n1,2,3\n", "<html>\n"])
def test_other_tables_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=r"a\.csv.*needs the columns a, b"):
        read_rows(path, ["a", "b"])
