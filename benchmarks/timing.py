"""Wall-clock times that can be compared: warmed up, interleaved, medians."""

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import NamedTuple

Clock = Callable[[], float]
"""Says what time it is in seconds: ``perf_counter``, or ``process_time`` of the CPU."""

SHORTEST = 0.05
"""Seconds that one measurement lasts at least; faster functions are called often."""


class Timing(NamedTuple):
    """Seconds per call, over the repetitions."""

    median: float
    fastest: float
    slowest: float


def seconds(
    function: Callable[[], object],
    *,
    calls: int = 1,
    clock: Clock = time.perf_counter,
) -> float:
    """Time ``calls`` calls without garbage collection and return seconds per call."""
    with _no_garbage_collection():
        start = clock()
        for _ in range(calls):
            function()
        return (clock() - start) / calls


def interleaved(
    functions: Mapping[str, Callable[[], object]],
    *,
    repetitions: int,
    lasting: float = 0.0,
    clock: Clock = time.perf_counter,
) -> dict[str, Timing]:
    """Time functions side by side, so that a busy minute hurts all of them alike.

    Each is warmed up, then all are measured in turn, ``repetitions`` times over, and
    more often where that is over in less than ``lasting`` seconds.
    """
    calls = {name: _warm_up(function) for name, function in functions.items()}
    found: dict[str, list[float]] = {name: [] for name in functions}
    end, done = time.perf_counter() + lasting, 0
    while done < repetitions or time.perf_counter() < end:
        done += 1
        for name, function in functions.items():
            found[name].append(seconds(function, calls=calls[name], clock=clock))
    return {
        name: Timing(median(times), min(times), max(times))
        for name, times in found.items()
    }


def _warm_up(function: Callable[[], object]) -> int:
    """Call a function until it is at its pace; return how many calls to time at once.

    The first calls may be much slower than the rest, and would have too few of them
    measured.
    """
    calls, last = 1, seconds(function)
    while calls * last < SHORTEST or calls == 1:
        if last > 5 * SHORTEST:
            return 1
        calls = max(2 * calls, math.ceil(SHORTEST / last))
        last = seconds(function, calls=calls)
    return calls


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
