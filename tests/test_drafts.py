"""Files that appear only when they are complete."""

import pytest

from caveat._drafts import checked_output, whole_file
from caveat.errors import DataError, ParameterError


def test_a_file_is_there_at_the_end(tmp_path):
    path = tmp_path / "f"
    path.write_text("before")
    with whole_file(path) as draft:
        draft.write_text("after")
        assert path.read_text() == "before" and draft.parent == tmp_path
    assert path.read_text() == "after" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, BrokenPipeError])
def test_what_goes_wrong_leaves_nothing(error, tmp_path):
    with pytest.raises(error), whole_file(tmp_path / "f") as draft:
        draft.write_text("half")
        raise error
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_system_is_told(tmp_path):
    with pytest.raises(DataError, match="f could not be written: No space"):
        with whole_file(tmp_path / "f"):
            raise OSError(28, "No space left on device")


def test_places_are_checked_first(tmp_path):
    with pytest.raises(ParameterError, match="is a folder"):
        checked_output(tmp_path)
    with pytest.raises(ParameterError, match="make it first"):
        checked_output(tmp_path / "a" / "b")
    (tmp_path / "link").symlink_to(tmp_path / "goal")
    assert checked_output(tmp_path / "link") == tmp_path.resolve() / "goal"


def test_the_mode_is_that_of_any_new_file(tmp_path):
    (tmp_path / "plain").touch()
    with whole_file(tmp_path / "f") as draft:
        draft.touch()
    modes = {p.stat().st_mode for p in tmp_path.iterdir()}
    assert len(modes) == 1


def test_what_is_read_is_not_replaced(tmp_path):
    table = tmp_path / "t.csv"
    table.touch()
    (tmp_path / "link.csv").symlink_to(table)
    for other in (table, tmp_path / "link.csv", tmp_path / "." / "t.csv"):
        with pytest.raises(ParameterError, match="would be lost"):
            checked_output(other, tmp_path / "none", table)
    assert checked_output(tmp_path / "new.csv", table, "-")
