"""Stores: what is finished stays so, whatever ends the program."""

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import caveat.training.search as module
from caveat.errors import DataError
from caveat.evaluation.precision import BestScale
from caveat.training import (
    FileStore,
    Memory,
    NetworkSpec,
    Schedule,
    Task,
    fit_ensembles,
    grid_search,
)
from caveat.training.stores import Key, fingerprint

KEY = Key(fingerprint(b"rows"), NetworkSpec((5, 6)).described(), "a")
SCORE = BestScale(0.1 + 0.2, -1 / 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "new" / "scores.jsonl"


def test_scores_come_back_to_the_last_bit(path):
    FileStore(path).put({KEY: SCORE})
    assert FileStore(path).get(KEY) == SCORE


def test_later_scores_are_added(path):
    FileStore(path).put({KEY: SCORE})
    other = replace(KEY, circumstances=fingerprint(b"others"))
    FileStore(path).put({other: BestScale(3.0, -2.0)})
    store = FileStore(path)
    assert len(store) == 2
    assert store.get(KEY) == SCORE and store.get(other) == BestScale(3.0, -2.0)


def test_what_was_never_put_is_not_there(path):
    for store in (Memory(), FileStore(path)):
        assert store.get(KEY) is None
        store.put({KEY: SCORE})
        assert store.get(replace(KEY, circumstances="0")) is None
        assert store.get(replace(KEY, task="another name")) == SCORE


def test_lines_are_json_that_people_can_read(path):
    FileStore(path).put({KEY: SCORE})
    record = json.loads(path.read_text())
    assert record["task"] == "a" and "hidden=(5, 6)" in record["spec"]


def test_a_divergence_is_kept_as_such(path):
    FileStore(path).put({KEY: BestScale(math.nan, -math.inf)})
    scale, value, _ = FileStore(path).get(KEY)
    assert math.isnan(scale) and value == -math.inf
    assert "NaN" not in path.read_text()


def test_numbers_of_numpy_are_kept(path):
    FileStore(path).put({KEY: BestScale(np.float64(1.0), np.float64(2.0))})
    assert FileStore(path).get(KEY) == BestScale(1.0, 2.0)


@pytest.mark.parametrize("left", [1, 5, 18, 60, -2, -1])
def test_a_line_cut_short_is_left_out(path, left):
    store = FileStore(path)
    store.put({KEY: SCORE})
    whole = path.read_bytes()
    path.write_bytes(whole + whole[:left])
    resumed = FileStore(path)
    assert resumed.get(KEY) == SCORE
    other = replace(KEY, circumstances="other")
    resumed.put({other: SCORE})
    again = FileStore(path)
    assert again.get(KEY) == SCORE and again.get(other) == SCORE


@pytest.mark.parametrize(
    "content", [b"x,y\n1,2\n", b'{"a": 1}\n', b"hello", b"[1, 2]\n", b"\xff\xfe\n"]
)
def test_another_kind_of_file_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "notes"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"line 1 of .*notes must be a score"):
        FileStore(path)
    assert path.read_bytes() == content


def test_fingerprints_tell_apart_what_joins_to_the_same():
    assert fingerprint(b"ab", b"c") != fingerprint(b"a", b"bc")


SPEC = NetworkSpec((8,), input_drop_rate=0.1, schedule=Schedule(epochs=20), n_draws=20)
GRID = [SPEC.vary(drop_rate=rate) for rate in (0.01, 0.05, 0.1, 0.2)]


def a_task():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2))
    return Task("a", x, np.sin(x[:, :1]) + 0.1 * rng.normal(size=(50, 1)))


def slowly(monkeypatch, after=None, seconds=0.0):
    """Fleets of one candidate; the one numbered ``after`` is interrupted."""
    trained = []

    def recorded(problems, **how):
        if len(trained) == after:
            raise KeyboardInterrupt
        trained.append({p.spec for p in problems})
        time.sleep(seconds if len(trained) > 2 else 0.0)
        return fit_ensembles(problems, **how)

    monkeypatch.setattr(module, "_AT_ONCE", 1)
    monkeypatch.setattr(module, "fit_ensembles", recorded)
    return trained


def test_interrupted_searches_go_on_where_they_were(path, monkeypatch):
    slowly(monkeypatch)
    whole = grid_search([a_task()], GRID)
    slowly(monkeypatch, after=3)
    with pytest.raises(KeyboardInterrupt):
        grid_search([a_task()], GRID, store=FileStore(path))
    trained = slowly(monkeypatch)
    resumed = grid_search([a_task()], GRID, store=FileStore(path))
    assert trained == [{GRID[3]}]
    assert resumed == whole


SCRIPT = """
import pytest
from tests.training.test_stores import GRID, a_task, slowly
from caveat.training import FileStore, grid_search
slowly(pytest.MonkeyPatch(), seconds=60.0)
grid_search([a_task()], GRID, store=FileStore({path!r}))
"""


def test_killed_searches_go_on_where_they_were(path, monkeypatch):
    """The third fleet sleeps; by then two scores are in the file."""
    command = [sys.executable, "-c", SCRIPT.format(path=str(path))]
    process = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    try:
        deadline = time.monotonic() + 60
        while not path.exists() or path.read_bytes().count(b"\n") < 2:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    assert len(FileStore(path)) == 2
    trained = slowly(monkeypatch)
    resumed = grid_search([a_task()], GRID, store=FileStore(path))
    assert trained == [{GRID[2]}, {GRID[3]}]
    assert resumed == grid_search([a_task()], GRID)
