"""A bar appears after a second, where it is wanted, and never else."""

import pytest

from caveat import _progress
from caveat._progress import ProgressBar


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until it is told to move."""
    now = [0.0]
    monkeypatch.setattr(_progress.time, "perf_counter", lambda: now[0])
    return now


@pytest.mark.parametrize("show", [False, None])
def test_nothing_is_shown_unasked(show, clock, capsys):
    with ProgressBar("rows", 3, show) as bar:  # the output of a test is no terminal
        clock[0] = 9.0
        bar.advance(3)
    assert capsys.readouterr().err == ""


def test_short_work_shows_nothing(clock, capsys):
    with ProgressBar("rows", 3, True) as bar:
        clock[0] = 0.9
        bar.advance(3)
    assert capsys.readouterr().err == ""


def test_long_work_shows_what_is_done(clock, monkeypatch):
    with ProgressBar("rows", 5, True) as bar:
        bar.advance()
        clock[0] = 1.1
        bar.advance(2)
        (task,) = bar._progress.tasks
        assert (task.description, task.completed, task.total) == ("rows", 3, 5)
        bar.advance()
        assert bar._progress.tasks[0].completed == 4
    assert bar._progress.finished is False
    assert not bar._progress.live.is_started


def test_a_bar_is_closed_after_an_error(clock):
    with pytest.raises(KeyError), ProgressBar("rows", None, True) as bar:
        clock[0] = 2.0
        bar.advance()
        raise KeyError
    assert not bar._progress.live.is_started
