"""Memory that is free but still with the process."""

import ctypes
from functools import cache
from typing import Any


def give_back() -> None:
    """Let the C library return what it has free, where it can be asked to.

    Memory for the work on a batch is freed when the batch is done, but with other
    things above it in the heap it stays with the process, and more with every batch.
    """
    if (trim := _trim()) is not None:
        trim(0)


@cache
def _trim() -> Any:
    try:
        return ctypes.CDLL(None).malloc_trim  # glibc
    except (AttributeError, OSError, TypeError):
        return None
