"""Ctrl-C: it ends soon, says what is kept, and it is true."""

import csv
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from caveat.papers.records import read_records
from caveat.papers.runner import complete
from tests.papers.squares import Brief, Square, Squares

ROOT = Path(__file__).parents[2]
LONG = 600.0  # seconds of a job: nobody waits for it
# A shell calls both 130: the code, and an interpreter that ends itself by the signal.
INTERRUPTED = (130, -signal.SIGINT)
SOON = 10.0  # two are wanted; a busy machine may take longer to end its processes


def begun(folder: Path, seconds: float) -> subprocess.Popen[str]:
    """The command in a session of its own, as a terminal would start it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.papers.slow_squares", str(folder), str(seconds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def stored(folder: Path) -> set[int]:
    return {r.number for r in read_records(folder / "squares.csv", Square)}


def wait_for(folder: Path, wanted: set[int], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + 120.0
    while stored(folder) < wanted:
        assert process.poll() is None and time.monotonic() < end, process.stderr.read()
        time.sleep(0.05)


@pytest.mark.skipif(os.name != "posix", reason="signals of a terminal")
def test_a_run_that_is_stopped_can_be_taken_up(tmp_path):
    """Results come in the order in which they end: 2 and 5 are behind 1, 3 and 4."""
    process = begun(tmp_path, LONG)
    try:
        wait_for(tmp_path, {2}, process)
        kept, start = stored(tmp_path), time.monotonic()
        os.killpg(process.pid, signal.SIGINT)  # all of its processes hear it
        _, told = process.communicate(timeout=60.0)
        assert time.monotonic() - start < SOON
    finally:
        process.kill()
    assert process.returncode in INTERRUPTED
    assert "Traceback" not in told and "KeyboardInterrupt" not in told
    assert f"saved {len(kept)} of 6; run again to go on" in told
    assert stored(tmp_path) == kept

    again = begun(tmp_path, 0.0)
    page, told = again.communicate(timeout=120.0)
    assert again.returncode == 0, told
    assert stored(tmp_path) == {1, 2, 3, 4, 5, 6, 21}
    assert "36.0" in page


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_table1_on_two_workers_of_ray_is_killed_and_taken_up(tmp_path):
    """Small sets and few splits; the driver is killed when the first job is stored."""
    pytest.importorskip("ray")
    if "CAVEAT_DATA" not in os.environ:
        pytest.skip("the data of the table are in the folder CAVEAT_DATA")
    command = [sys.executable, "-m", "caveat", "reproduce", "table1"]
    command += ["--protocol", "pbp", "--sets", "yacht,energy,boston", "--splits", "2"]
    ray = ["--engine", "ray", "--workers", "2", "--output", str(tmp_path / "ray")]
    store = tmp_path / "ray" / "table1_pbp.csv"

    process = subprocess.Popen([*command, *ray], cwd=ROOT, stderr=subprocess.PIPE)
    end = time.monotonic() + 600.0
    while not store.exists():
        assert process.poll() is None and time.monotonic() < end, process.stderr.read()
        time.sleep(0.05)
    process.kill()
    process.communicate()
    kept = store.read_text().splitlines()
    here = ["--workers", "1", "--output", str(tmp_path / "here")]
    for place in (ray, here):
        subprocess.run([*command, *place], cwd=ROOT, check=True, capture_output=True)
    whole = store.read_text().splitlines()
    assert 1 < len(kept) < len(whole) and set(kept) <= set(whole)
    assert without_times(store) == without_times(tmp_path / "here" / store.name)


def without_times(path: Path) -> list[dict[str, str]]:
    """The records, but for how long they took."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if "second" not in k} for row in rows]


def test_what_is_said_is_what_is_stored(tmp_path, monkeypatch):
    run = Squares.run

    def stopped_at_three(self, job):
        if job == 3:
            raise KeyboardInterrupt
        return run(self, job)

    monkeypatch.setattr(Squares, "run", stopped_at_three)
    with pytest.raises(RuntimeError, match=r"^saved 2 of 3; run again to go on$"):
        complete(Squares(tmp_path), n_workers=1)
    with pytest.raises(RuntimeError, match=r"^stopped; nothing was saved"):
        complete(Brief(tmp_path / "brief"), n_workers=1)
