"""Objects among the arguments and outputs of a model, such as key-value caches.

A model may write to an object that it is given. Every pass must start from the object
as it was, and the user's own must stay as it is, so each pass gets a copy: new objects
and containers all the way down. What their tensors are is up to the caller; sharing
them is safe, since the recorder lets no write reach a tensor from before the pass.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from torch import Tensor, nn

OnTensor = Callable[[Tensor], Tensor]

_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))
# What is used, not changed: a copy of it would be something else.
_SHARED = (
    *(nn.Module, type, Enum, range, slice),
    *(FunctionType, BuiltinFunctionType, MethodType, ModuleType),
)


def rebuilt(value: Any, on_tensor: OnTensor) -> Any:
    """``value`` made anew, with ``on_tensor`` of each tensor in it."""
    return _Rebuilding(on_tensor).of(value)


def tensors_inside(value: Any) -> list[Tensor]:
    """All tensors in ``value``, in a fixed order."""
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    rebuilt(value, note)
    return found


class _Rebuilding:
    """One walk; what is met twice stays one thing."""

    def __init__(self, on_tensor: OnTensor) -> None:
        self._on_tensor = on_tensor
        self._made: dict[int, tuple[Any, Any]] = {}  # the original is kept for its id

    def of(self, value: Any) -> Any:
        if type(value) in _PLAIN or isinstance(value, _SHARED):
            return value
        if id(value) not in self._made:
            self._made[id(value)] = value, None
            made = self._new(value)
            self._made[id(value)] = value, made
        return self._made[id(value)][1]

    def _new(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self._on_tensor(value)
        if isinstance(value, np.ndarray):
            return value.copy()
        if isinstance(value, tuple):
            items = [self.of(item) for item in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else tuple.__new__(type(value), items)
        if not isinstance(value, dict | list | set | deque) and not _has_state(value):
            return value
        try:
            made = _empty(value)
        except Exception:  # a class that cannot be copied is shared
            return value
        self._made[id(value)] = value, made  # it may hold itself
        self._fill(made, value)
        return made

    def _fill(self, made: Any, value: Any) -> None:
        if isinstance(value, dict):
            for key in list(value):
                dict.__setitem__(made, key, self.of(dict.__getitem__(value, key)))
        elif isinstance(value, list | deque):
            for i, item in enumerate(value):
                made[i] = self.of(item)
        elif isinstance(value, set):
            made.clear()
            made.update([self.of(item) for item in value])
        for name, item in _state(value):
            object.__setattr__(made, name, self.of(item))


def _empty(value: Any) -> Any:
    if isinstance(value, dict | list | set | deque):
        return copy.copy(value)
    return object.__new__(type(value))


def _has_state(value: Any) -> bool:
    return hasattr(value, "__dict__") or any(True for _ in _slots(value))


def _state(value: Any) -> Iterator[tuple[str, Any]]:
    yield from list(getattr(value, "__dict__", {}).items())
    for name in _slots(value):
        if hasattr(value, name):
            yield name, getattr(value, name)


def _slots(value: Any) -> Iterator[str]:
    for base in type(value).__mro__:
        names = base.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name not in ("__dict__", "__weakref__"):
                yield name
