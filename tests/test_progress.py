"""A bar shows itself late, on a terminal, or when told to."""

import subprocess
import sys

import pytest

from caveat import _progress
from caveat._progress import ProgressBar


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(_progress, "_PATIENCE", -1.0)


@pytest.mark.parametrize("show", [False, None])
def test_nothing_is_shown_beside_a_terminal(impatient, capfd, show):
    with ProgressBar("draws", 3, show) as bar:
        for _ in range(3):
            bar.advance()
    captured = capfd.readouterr()
    assert captured.out == captured.err == ""


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes what follows for a terminal


def test_a_bar_that_is_asked_for(impatient, terminal):
    with ProgressBar("draws", 3, True) as bar:
        bar.advance(2)
        (task,) = bar._progress.tasks
        assert (task.description, task.completed, task.total) == ("draws", 2, 3)
        bar.advance()
        assert task.finished


def test_short_work_shows_nothing(capfd):
    with ProgressBar("draws", 3, True) as bar:
        bar.advance(3)
        assert bar._progress is None
    assert capfd.readouterr().err == ""


def in_a_new_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_short_work_does_not_load_rich():
    code = (
        "import sys; from caveat._progress import ProgressBar\n"
        "with ProgressBar('x', 1, None) as bar: bar.advance()\n"
        "print('rich' in sys.modules)"
    )
    assert in_a_new_process(code) == "False"


@pytest.mark.parametrize("show", ["None", "True"])
def test_a_late_bar_leaves_the_generator_of_python_alone(show):
    """Loading rich draws from it."""
    code = (
        "import random, sys; from caveat import _progress\n"
        "_progress._PATIENCE = -1.0; state = random.getstate()\n"
        f"with _progress.ProgressBar('x', 1, {show}) as bar: bar.advance()\n"
        "print('rich' in sys.modules, random.getstate() == state)"
    )
    assert in_a_new_process(code) == "True True"


def test_a_printed_audit_leaves_the_generator_of_python_alone():
    code = (
        "import random, sys, torch, caveat\n"
        "net = torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.Dropout(0.1))\n"
        "audit, state = caveat.audit(net, torch.ones(2, 1)), random.getstate()\n"
        "'rate' in str(audit) and print(random.getstate() == state)"
    )
    assert in_a_new_process(code) == "True"


def test_lines_where_there_is_no_terminal(impatient, capfd, monkeypatch):
    """One at first, one when enough time has passed, one at the end."""
    with ProgressBar("jobs", 30, True) as bar:
        for done in range(1, 31):
            monkeypatch.setattr(_progress, "_BETWEEN", 0.0 if done == 19 else 1e6)
            if done == 20:
                bar._next_line = 0.0
            bar.advance()
    told = [line.split(",")[0] for line in capfd.readouterr().err.splitlines()]
    assert told == ["jobs: 1 of 30", "jobs: 20 of 30", "jobs: 30 of 30"]


def test_the_last_line_is_not_said_twice(impatient, capfd):
    with ProgressBar("rows", 5, True) as bar:
        bar.advance(5)
    assert capfd.readouterr().err.count("rows: 5 of 5") == 1


def test_a_line_without_a_known_end(impatient, capfd):
    with ProgressBar("rows", None, True) as bar:
        bar.advance(3)
    assert capfd.readouterr().err.startswith("rows: 3, 0 s\n")


def test_a_bar_is_closed_after_an_error(impatient, terminal):
    with pytest.raises(KeyError), ProgressBar("rows", None, True) as bar:
        bar.advance()
        raise KeyError
    assert not bar._progress.live.is_started
