"""Work side by side."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from threadpoolctl import threadpool_info

from caveat._threads import blas_for, core_for, in_order, side_by_side


def test_results_come_in_order_and_each_has_one_core():
    before = torch.get_num_threads()
    meeting = threading.Barrier(2, timeout=30)

    def work(item, stopped):
        meeting.wait()  # passes only if two run at the same time
        return item, torch.get_num_threads()

    assert side_by_side(work, [3, 1, 4, 2], 2) == [(3, 1), (1, 1), (4, 1), (2, 1)]
    assert torch.get_num_threads() == before


def test_an_error_leaves_torchs_threads_as_they_were():
    before = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda item, stopped: 1 / item, [1, 0], 2)
    assert torch.get_num_threads() == before


def test_an_error_stops_the_others():
    begun = threading.Event()

    def work(item, stopped):
        if item == "fails":
            begun.wait(30)
            return 1 / 0
        begun.set()
        while not stopped():
            time.sleep(0.01)
        return item

    with pytest.raises(ZeroDivisionError):
        side_by_side(work, ["goes on for ever", "fails", "waits"], 2)


# ------------------------------------------------------------ Ctrl-C

PREPARE = """
import numpy as np
from caveat.training import *
from caveat.training.members import Member, Rows
from caveat.training.stores import FileStore
from caveat.training.stopping import Watch
x = np.linspace(-1, 1, 400)[:, None]
spec = NetworkSpec((64, 64), schedule=Schedule(epochs=EPOCHS))
rows = Rows.of(x, x)
of = lambda i: Member.of(spec, str(i), precision=10.0, n_train=400, seed=i)
members = [of(i) for i in range(40)]
task, store = Task("line", x, 2 * x), FileStore("scores.jsonl")
settings = [(r, e) for e in (1, EPOCHS) for r in (0.1, 0.2)]
specs = [spec.vary(drop_rate=rate, epochs=e) for rate, e in settings]
print("ready", flush=True)
"""
NEVER = 10**6  # epochs that nobody lives to see
WORK = {
    "fleet": "train(members, [rows])",
    "fleet that watches": (
        "train(members, [rows], watch=Watch([rows] * 40, every=7, patience=10**6))"
    ),
    "grid search": (
        "grid_search([task], specs[:2], store=store)\n"
        "grid_search([task], specs, store=store)"
    ),
    "bayesian search": (
        "bayesian_search([task], {'drop_rate': LogUniform(0.01, 0.5)}, spec)"
    ),
}


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize("work", WORK)
def test_ctrl_c_is_answered_once(work, tmp_path):
    if work == "bayesian search":
        pytest.importorskip("optuna")
    code = PREPARE.replace("EPOCHS", str(NEVER)) + WORK[work]
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "ready\n"
        _wait_until_busy(process, tmp_path, work)
        process.send_signal(signal.SIGINT)
        start = time.perf_counter()
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode in (-signal.SIGINT, 130), errors
    assert "KeyboardInterrupt" in errors
    assert time.perf_counter() - start < 15  # well below a second on an idle machine
    if work == "grid search":  # what was finished before is not done again
        lines = (tmp_path / "scores.jsonl").read_text().splitlines()
        assert len([json.loads(line) for line in lines]) == 2


def _wait_until_busy(process, folder: Path, work: str) -> None:
    end = time.monotonic() + 60
    while work == "grid search" and not (folder / "scores.jsonl").exists():
        assert time.monotonic() < end and process.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    assert process.poll() is None


def test_results_in_order_while_others_are_made():
    alive = []

    def work(number):
        alive.append(number)
        assert torch.get_num_threads() == 1
        return number

    before = torch.get_num_threads()
    found = []
    for number in in_order(work, range(20), 2):
        assert len(alive) <= number + 4  # few are made ahead of time
        found.append(number)
    assert found == list(range(20))
    assert torch.get_num_threads() == before


def test_results_that_nobody_takes():
    before = torch.get_num_threads()
    results = in_order(lambda number: number, range(1000), 2)
    assert next(results) == 0
    results.close()
    assert torch.get_num_threads() == before


def test_an_error_in_a_thread_is_raised_in_its_turn():
    def work(number):
        if number == 3:
            raise ValueError("three")
        return number

    found = []
    with pytest.raises(ValueError, match="three"):
        for number in in_order(work, range(9), 2):
            found.append(number)
    assert found == [0, 1, 2]


def threads_of_blas():
    return [
        pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"
    ]


def test_few_numbers_are_worked_on_by_one_core():
    before = torch.get_num_threads()
    with core_for(1000):
        assert torch.get_num_threads() == 1
    with core_for(10**6):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before


def test_one_thread_of_blas_and_then_as_many_as_before():
    with blas_for(10):
        assert set(threads_of_blas()) == {1}
    before = threads_of_blas()
    with blas_for(10**9):
        assert threads_of_blas() == before


def test_blas_is_as_it_was_after_fits_that_overlapped():
    with blas_for(10):
        pass
    before, found = threads_of_blas(), []
    entered, go_on = threading.Event(), threading.Event()

    def other():
        with blas_for(10):
            entered.set()
            go_on.wait(30)
        found.append(threads_of_blas())

    thread = threading.Thread(target=other)
    with blas_for(10):
        thread.start()
        assert entered.wait(30)
    go_on.set()
    thread.join()
    assert found == [before]
    assert threads_of_blas() == before
