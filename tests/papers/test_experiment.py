"""What every experiment can do."""

from pathlib import Path

import pytest

from tests.papers.squares import Square, Squares


@pytest.mark.parametrize(
    ("quick", "file", "command"),
    [
        (False, "squares.csv", "caveat reproduce squares"),
        (True, "squares_quick.csv", "caveat reproduce squares --quick"),
    ],
)
def test_a_smoke_test_has_files_of_its_own(quick, file, command):
    own = Squares(Path("here"), quick)
    assert own.path("csv") == Path("here") / file
    assert own.command == command


def test_records_are_in_the_order_of_jobs_and_others_are_left_out():
    own = Squares(Path(), numbers=(3, 1))
    known = {k: [Square(k, k**2)] for k in (1, 2, 3)}
    assert [r.number for r in own.ordered(known)] == [3, 1]


def test_a_job_is_done_if_all_its_keys_are_there():
    own = Squares(Path())
    assert own.is_done(2, {1, 2}) and not own.is_done(3, {1, 2})
