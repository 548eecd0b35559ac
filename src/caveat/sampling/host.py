"""Python's and numpy's global generators, for models that draw from them.

A layer may be skipped when ``random.random()`` says so. Such numbers have no address;
what can be done is to seed both generators by draw before a pass and put them back
after it. They are global to the process, so these passes take turns.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from caveat._random import stream_key

_turn = threading.RLock()


@contextmanager
def seeded_host_generators(seed: int, draw: int) -> Iterator[None]:
    """Python's and numpy's generators seeded for this draw, restored on exit."""
    with _turn:
        before = _state()
        try:
            _seed(stream_key(seed, f"host@{draw}"))
            yield
        finally:
            _restore(before)


@contextmanager
def watched_host_generators() -> Iterator[list[bool]]:
    """On exit the list says whether either generator was used; both are restored.

    They start from a fixed state, so that what is seen does not hang on their past.
    """
    used: list[bool] = []
    with _turn:
        before = _state()
        try:
            _seed(0)
            start = _state()
            yield used
        finally:
            used.append(not _same(start, _state()))
            _restore(before)


def _seed(key: int) -> None:
    random.seed(key)
    np.random.seed(key % 2**32)  # noqa: NPY002


def _state() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state(legacy=True)  # noqa: NPY002


def _restore(state: tuple[Any, Any]) -> None:
    random.setstate(state[0])
    np.random.set_state(state[1])  # noqa: NPY002


def _same(left: tuple[Any, Any], right: tuple[Any, Any]) -> bool:
    return left[0] == right[0] and all(
        np.array_equal(a, b) for a, b in zip(left[1], right[1], strict=True)
    )
