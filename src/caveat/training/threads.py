"""Several pieces of work side by side, each on one core.

Small tensors gain nothing from several threads per operation and lose much, so each
piece runs in a thread of its own whose operations are not split.

Python tells the main thread alone of Ctrl-C, and waits for all threads before it ends.
So a piece of work asks now and then whether it is still wanted, and the main thread
looks up from waiting (on Windows nothing else lets it hear of the key).
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
Stopped = Callable[[], bool]  # whether the result is no longer wanted

_LOOK_UP = 0.1  # seconds


def never() -> bool:
    """For work that nobody stops."""
    return False


def side_by_side(
    function: Callable[[Item, Stopped], Result], items: Iterable[Item], n_threads: int
) -> list[Result]:
    """Results of ``function`` for all items, in order, on ``n_threads`` cores.

    ``function`` is also given something to ask now and then. Once that says True,
    because of Ctrl-C or an error elsewhere, whatever it returns is thrown away.
    """
    before, stop = torch.get_num_threads(), threading.Event()
    pool = ThreadPoolExecutor(
        n_threads, initializer=torch.set_num_threads, initargs=(1,)
    )
    try:
        futures = [pool.submit(function, item, stop.is_set) for item in items]
        _wait(futures)
        return [future.result() for future in futures]
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        # A thread's setting is its own, but new threads take over the latest one.
        torch.set_num_threads(before)


def _wait(futures: list["Future[Result]"]) -> None:
    """Until all are done, or one has failed: then raise its error."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, _LOOK_UP, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
