"""Many independent jobs on all cores, one thread each."""

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import TypeVar

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

J = TypeVar("J")
A = TypeVar("A")


def spread(
    run: Callable[[J], A], jobs: Sequence[J], n_workers: int | None = None
) -> Iterator[A]:
    """Answers of ``run`` to the jobs, in their order, as they come.

    Parameters
    ----------
    run : callable
        A function of a module, so that other processes can find it.
    jobs : sequence
        Each of them small enough to be sent.
    n_workers : int, optional
        Processes, by default one per core; with 1 all is done in this one.

    Yields
    ------
    What ``run`` returns.
    """
    alone = partial(_single_threaded, run)
    count = min(n_workers or os.cpu_count() or 1, len(jobs))
    if count <= 1:
        yield from map(alone, jobs)
        return
    others = multiprocessing.active_children()
    with ProcessPoolExecutor(count, multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(alone, jobs)
        except BaseException:  # Ctrl-C, too: nobody waits for what runs now
            pool.shutdown(wait=False, cancel_futures=True)
            for process in multiprocessing.active_children():
                if process not in others:
                    process.terminate()
            raise


def _single_threaded(run: Callable[[J], A], job: J) -> A:
    """Small matrices lose by more threads, and the cores are taken anyway."""
    with threadpool_limits(1):
        return run(job)
