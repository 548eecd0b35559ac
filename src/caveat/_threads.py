"""Several pieces of work side by side, each on one core.

Small tensors gain nothing from several threads per operation and lose much, so each
piece runs in a thread of its own whose operations are not split. Nor do such threads
wait for each other at every operation: where another process has taken a core, threads
of one operation wait for a whole turn of it, thousands of times.

Python tells the main thread alone of Ctrl-C, and waits for all threads before it ends.
So a piece of work asks now and then whether it is still wanted, and the main thread
looks up from waiting (on Windows nothing else lets it hear of the key).
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, ClassVar, TypeVar, final

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")
Stopped = Callable[[], bool]  # whether the result is no longer wanted

_LOOK_UP = 0.1  # seconds
_FEW = 1 << 15  # numbers
_MANY = 1 << 21  # numbers; from there on products are worth several threads


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


def in_order(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> Iterator[Result]:
    """Results of ``function`` one after the other, on ``n_threads`` cores.

    Few are made ahead of time. Until the last is taken, operations of the calling
    thread are not split either.
    """
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(
        n_threads, initializer=torch.set_num_threads, initargs=(1,)
    )
    waiting: deque[Future[Result]] = deque()
    try:
        torch.set_num_threads(1)
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > n_threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(before)


@final
class one_core:
    """Operations inside are not split: they are so small that threads only cost.

    Where another process has a core, two threads of a product of a few microseconds may
    wait a whole turn for each other.
    """

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before = torch.get_num_threads()
        if self._before > 1:
            torch.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        if self._before > 1:
            torch.set_num_threads(self._before)


def core_for(n_numbers: int) -> AbstractContextManager[None]:
    """One core for elementwise work on so few numbers, else as many as there are.

    Some of torch's functions (``exp``, ``log``) are split however small they are.
    Threads that sleep must be woken for that, which takes longer than the work.
    """
    return one_core() if n_numbers <= _FEW else nullcontext()


def blas_for(n_numbers: int) -> AbstractContextManager[None]:
    """One thread for linear algebra of numpy and scipy on so few numbers.

    They bring a pool of threads each, and each pool spins for a while on the cores that
    the other has work for: an optimiser of scipy around small products of numpy took
    seven times as long as on one thread.
    """
    return nullcontext() if n_numbers > _MANY else _OneThreadOfBlas()


@final
class _OneThreadOfBlas:
    """The setting is a thread's own in some builds of OpenBLAS, else the process's.

    So each restores what it found; and the last to leave what the first found, as
    others may have found what another had set.
    """

    _lock = threading.Lock()
    _inside: ClassVar[int] = 0
    _first: ClassVar[Any] = None

    def __enter__(self) -> None:
        kind = type(self)
        with self._lock:
            self._own = _pools().limit(limits=1, user_api="blas")
            if not kind._inside:
                kind._first = self._own
            kind._inside += 1

    def __exit__(self, *error: object) -> None:
        kind = type(self)
        with self._lock:
            kind._inside -= 1
            self._own.restore_original_limits()
            if not kind._inside:
                kind._first.restore_original_limits()


@cache
def _pools() -> Any:
    """The libraries that are loaded by now; to look for them takes 10 ms."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def _wait(futures: list["Future[Result]"]) -> None:
    """Until all are done, or one has failed: then raise its error."""
    waiting = set(futures)
    while waiting:
        done, waiting = wait(waiting, _LOOK_UP, return_when=FIRST_EXCEPTION)
        for future in done:
            future.result()
