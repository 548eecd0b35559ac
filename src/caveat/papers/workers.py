"""Many independent jobs on all cores, one thread each."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

J = TypeVar("J")
A = TypeVar("A")


def spread(
    run: Callable[[J], A], jobs: Sequence[J], n_workers: int | None = None
) -> Iterator[tuple[J, A]]:
    """The jobs with the answers of ``run``, in the order in which they end.

    Parameters
    ----------
    run : callable
        A function of a module, so that other processes can find it.
    jobs : sequence
        Each of them small enough to be sent.
    n_workers : int, optional
        Processes, by default one per core; with 1 all is done in this one, in order.

    Yields
    ------
    A job, and what ``run`` returns for it.
    """
    alone = partial(_single_threaded, run)
    count = min(n_workers or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        for job in jobs:
            yield job, alone(job)
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        try:
            with _deaf_children():
                futures = {pool.submit(alone, job): job for job in jobs}
            yield from _as_they_end(futures)
        except BaseException:  # Ctrl-C, too: nobody waits for what runs now
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _as_they_end(futures: dict[Future[A], J]) -> Iterator[tuple[J, A]]:
    """Jobs and answers; an error is raised when the answers before it are out."""
    for future in as_completed(futures):
        yield futures[future], future.result()


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started inside never hear Ctrl-C: this one ends them, in silence.

    A terminal sends it to all of them, and each would print a traceback. A signal mask
    is inherited from the first instruction on; Ctrl-C in between is heard at the end.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _single_threaded(run: Callable[[J], A], job: J) -> A:
    """Small matrices lose by more threads, and the cores are taken anyway."""
    with threadpool_limits(1):
        return run(job)
