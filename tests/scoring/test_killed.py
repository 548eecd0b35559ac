"""Killed at random points, and taken up: the rows and bytes of one process."""

import contextlib
import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from caveat.scoring import score
from caveat.scoring.folder import JOURNAL
from tests.scoring.data import N_ROWS, N_UNITS, checksums, quietly, rows_in

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals of POSIX"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]
ROOT = Path(__file__).parents[2]
BUSY = 900.0  # seconds that a run may take, or its workers to come, on a busy machine


def noted(folder: Path) -> int:
    """Units that the journal has."""
    journal = folder / JOURNAL
    text = journal.read_text() if journal.exists() else ""
    return sum(bool(line) for line in text.splitlines())


def test_the_driver_is_killed_three_times(model, tables, plain, tmp_path):
    """In a fork, which starts at once; wherever it is when its time has come."""
    rng, folder = random.Random(5), tmp_path / "out"
    start = time.monotonic()
    quietly(model, tables, tmp_path / "timed")
    whole = time.monotonic() - start
    for _ in range(3):
        other = multiprocessing.get_context("fork").Process(
            target=quietly, args=(model, tables, folder), kwargs={"resume": True}
        )
        other.start()
        time.sleep(rng.uniform(0.1, 0.8) * whole)
        other.kill()
        other.join()
    before = noted(folder)
    done = quietly(model, tables, folder, resume=True)
    assert done.n_new >= N_UNITS - before
    assert done.n_rows == rows_in(folder) == N_ROWS
    assert checksums(folder) == checksums(plain)


def test_two_processes_one_of_them_killed(model, tables, plain, tmp_path):
    """Whatever it was doing is done by another; nothing is failed or lost."""
    killed = []

    def kill_one():
        end = time.monotonic() + 120.0
        while time.monotonic() < end:
            if children := multiprocessing.active_children():
                killed.append(children[0].pid)
                os.kill(children[0].pid, signal.SIGKILL)
                return
            time.sleep(0.01)

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = score(model, tables, tmp_path / "out", n_workers=2)
    killer.join()
    assert killed and (done.n_rows, done.n_new) == (N_ROWS, N_UNITS)
    assert done.n_empty == 1
    assert checksums(tmp_path / "out") == checksums(plain)


def workers_of(pid: int) -> list[int]:
    """Worker processes of a process, by what Linux tells; of Ray, of its node."""
    found, todo = [], [pid]
    while todo:
        own = children_of(todo.pop())
        todo += own
        found += own
    marks = (b"spawn_main", b"ray::")
    return [n for n in found if any(mark in cmdline(n) for mark in marks)]


def children_of(pid: int) -> list[int]:
    """The processes that it has started."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):  # by any of its threads
        try:
            found += [int(number) for number in path.read_text().split()]
        except OSError:
            continue
    return found


def cmdline(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_workers_and_drivers_of_the_command_are_killed_twenty_times(
    engine, model, tables, plain, tmp_path
):
    """The command with two workers; after each kill of a driver it is taken up."""
    if engine == "ray":
        pytest.importorskip("ray")
    rng, folder, kills = random.Random(0), tmp_path / "out", []
    command = [sys.executable, "-m", "caveat", "score", str(model), str(tables)]
    command += [str(folder), "--workers", "2", "--resume", "--draws", "1000"]
    command += ["--engine", engine]
    folder.mkdir()
    while len(kills) < 20:
        process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
        try:
            kills += list(killing(process, rng, 20 - len(kills)))
        finally:
            process.kill()
        process.wait()
        if process.returncode == 0:  # it was faster: begin anew
            assert rows_in(folder) == N_ROWS
            for path in folder.rglob("*.parquet"):
                if rng.random() < 0.7:
                    path.unlink()
    last = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert last.returncode == 0, last.stderr
    from caveat.frames import Asking

    quietly(model, tables, tmp_path / "one", asking=Asking.of(n_draws=1000))
    assert json.loads((folder / "_manifest.json").read_text())["rows"] == N_ROWS
    assert rows_in(folder) == N_ROWS
    assert checksums(folder) == checksums(tmp_path / "one")
    assert {"driver", "worker"} <= set(kills)


def killing(process, rng, most):
    """Kill some workers as they come, and often the driver, if it has not ended.

    A cluster takes long to start on a busy machine, so that the clock starts with its
    workers; sometimes the driver does not get so far.
    """
    if rng.random() < 0.2:
        time.sleep(rng.uniform(0.2, 10.0))
        if process.poll() is None:
            yield killed_driver(process)
        return
    for _ in range(min(most, rng.randint(2, 6))):
        workers = workers_when_there_are(process)
        time.sleep(rng.uniform(0.0, 2.0))
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):  # it was faster
            os.kill(rng.choice(workers), signal.SIGKILL)
            yield "worker"
    if rng.random() < 0.7 and most > 6 and process.poll() is None:
        yield killed_driver(process)
    process.wait(timeout=BUSY)


def killed_driver(process) -> str:
    process.kill()
    process.wait()
    return "driver"


def workers_when_there_are(process) -> list[int]:
    """Its workers, as soon as it has some; whatever, if it has ended."""
    end = time.monotonic() + BUSY
    while time.monotonic() < end:
        if process.poll() is not None:
            return [process.pid]
        if workers := workers_of(process.pid):
            return workers
        time.sleep(0.05)
    raise AssertionError(f"no worker within {BUSY} seconds")
