"""Several pieces of work side by side, each on one core.

Small tensors gain nothing from several threads per operation and lose much, so each
piece runs in a thread of its own whose operations are not split.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def side_by_side(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int
) -> list[Result]:
    """Results of ``function`` for all items, in order, on ``n_threads`` cores."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(
        n_threads, initializer=torch.set_num_threads, initargs=(1,)
    )
    try:
        with pool:
            return list(pool.map(function, items))
    finally:
        # A thread's setting is its own, but new threads take over the latest one.
        torch.set_num_threads(before)
