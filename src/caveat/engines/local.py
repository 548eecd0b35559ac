"""Jobs on processes of this machine, each of which may end at any time.

The pools of the standard library are broken by one process that ends, and do not say
which job it had. Here each process has a pipe of its own and one job at a time.
"""

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from caveat.engines.jobs import TRIES

J = TypeVar("J")
A = TypeVar("A")

_CONTEXT = multiprocessing.get_context("spawn")  # a fork of torch's threads hangs
_PATIENCE = 0.5  # seconds that a process has to end when it is told to


@dataclass
class _Worker:
    """A process, the pipe to it, and the number of the job that it has."""

    process: Any
    pipe: "Connection[Any, Any]"
    number: int | None = None


def on_processes(
    run: Callable[[J], A], jobs: Sequence[J], count: int, on_lost: Callable[[J], A]
) -> Iterator[tuple[J, A]]:
    """Jobs and answers, as they end, from ``count`` processes.

    A job whose process ends is given to another, so often and no more; ``on_lost`` then
    answers it.
    """
    todo = deque(range(len(jobs)))
    tries = [0] * len(jobs)
    workers: list[_Worker] = []
    left = len(jobs)
    try:
        while left:
            while len(workers) < min(count, left):
                workers.append(_started(run))
            for worker in workers:
                if worker.number is None and todo:
                    worker.number = todo.popleft()
                    with suppress(OSError):  # it has ended: seen below
                        worker.pipe.send(jobs[worker.number])
            for worker in _ready(workers):
                number, worker.number = worker.number, None
                found = _received(worker)
                if found is None:
                    workers.remove(worker)
                    if number is None:
                        continue
                    tries[number] += 1
                    if tries[number] < TRIES:
                        todo.append(number)
                        continue
                    found = on_lost(jobs[number]), None
                assert number is not None  # an answer has a job
                answer, error = found
                if error is not None:
                    raise error  # as the job has raised it
                left -= 1
                yield jobs[number], answer
    finally:  # Ctrl-C, too: nobody waits for what runs now
        _end(workers)


def _ready(workers: list[_Worker]) -> list[_Worker]:
    """Those that have answered, or ended; a pipe is also ready when it is closed."""
    ready = wait([worker.pipe for worker in workers])
    return [worker for worker in workers if worker.pipe in ready]


def _received(worker: _Worker) -> tuple[Any, BaseException | None] | None:
    """The answer, or the error; None if it has ended."""
    try:
        found: tuple[Any, BaseException | None] = worker.pipe.recv()
    except (EOFError, OSError):
        worker.pipe.close()
        worker.process.join()
        return None
    return found


def _started(run: Callable[[J], A]) -> _Worker:
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_work, args=(theirs, run), daemon=True)
    with _deaf_children():
        process.start()
    theirs.close()
    return _Worker(process, ours)


def _end(workers: list[_Worker]) -> None:
    for worker in workers:
        worker.pipe.close()
        worker.process.terminate()
    for worker in workers:
        worker.process.join(_PATIENCE)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()


def _work(pipe: "Connection[Any, Any]", run: Callable[[Any], Any]) -> None:
    """What a process does: job after job, until nobody asks any more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        found: tuple[Any, BaseException | None]
        try:
            found = run(job), None
        except BaseException as error:
            error.add_note(traceback.format_exc())
            found = None, _sendable(error)
        pipe.send(found)


def _sendable(error: BaseException) -> BaseException:
    """The error, or its text, if it does not survive the way."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _end_with_parent() -> None:
    """A process whose parent was killed must not go on writing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started inside never hear Ctrl-C: this one ends them, in silence.

    A terminal sends it to all of them, and each would print a traceback. A signal mask
    is inherited from the first instruction on; Ctrl-C in between is heard at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # Started with the first process, it would leave Ctrl-C unblocked for that one.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
