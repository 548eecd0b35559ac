"""Runs that go on where they were interrupted."""

from dataclasses import dataclass

import pytest

from caveat._progress import ProgressBar
from caveat.papers.records import read_records, write_records
from caveat.papers.resuming import complete


@dataclass(frozen=True)
class Square:
    number: int
    square: int


def square(number):
    if number < 0:
        raise ValueError("negative")
    return [Square(number, number**2)]


def run(path, known, missing):
    bar = ProgressBar("Squares", len(missing), False)
    return complete(path, known, missing, square, bar=bar, n_workers=1)


def test_known_records_are_kept_in_the_order_of_the_jobs(tmp_path):
    path = tmp_path / "squares.csv"
    kept = Square(2, -4)  # not what a run would give
    found = run(path, {1: [], 2: [kept], 3: []}, [1, 3])
    assert found == [Square(1, 1), kept, Square(3, 9)]
    assert read_records(path, Square) == found


def test_what_was_done_before_an_error_is_on_disk(tmp_path):
    path = tmp_path / "squares.csv"
    with pytest.raises(ValueError, match="negative"):
        run(path, {4: [], -1: [], 5: []}, [4, -1, 5])
    assert read_records(path, Square) == [Square(4, 16)]


def test_nothing_missing_writes_nothing(tmp_path):
    path = tmp_path / "squares.csv"
    write_records(path, [Square(6, 36)])
    before = path.read_bytes()
    assert run(path, {6: [Square(6, 36)]}, []) == [Square(6, 36)]
    assert path.read_bytes() == before
