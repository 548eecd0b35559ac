"""Compiled functions inside a model run as what they were compiled from.

Under our modes torch's compiler would trace the modes as well. It is asked to stand
aside while a pass runs; the request is global, so it is counted.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_lock = threading.Lock()
_users = 0
_stance: Any = None


@contextmanager
def compiler_aside() -> Iterator[None]:
    """Run ``torch.compile``d functions eagerly, in any thread that is in the block."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled; do not load it for us
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users, _stance
    with _lock:
        if _users == 0:
            _stance = torch.compiler.set_stance("force_eager")
            _stance.__enter__()
        _users += 1


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            _stance.__exit__(None, None, None)
