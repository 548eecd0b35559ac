"""What a model looks like: whether anything was changed since it was last seen.

Classes, plain attributes (a rate, a switch), functions and hooks of all modules count.
Weights do not, nor does the training flag: passes run on a copy with flags of its own.
"""

import types
from collections import OrderedDict, defaultdict
from typing import Any

from torch import Tensor, nn

from caveat._torch import TENSORS

_PLAIN = frozenset((bool, int, float, str, type(None)))
_CONTAINERS = frozenset((list, tuple, set))
_MAPPINGS = frozenset((dict, OrderedDict, defaultdict))
_FUNCTIONS = frozenset((types.FunctionType, types.BuiltinFunctionType))
_NO_MATTER = frozenset(("training", *TENSORS))

Fingerprint = tuple[Any, ...]


def fingerprint(model: nn.Module) -> Fingerprint:
    """Equal for a model that has not changed; it holds no part of the model."""
    seen: dict[int, int] = {}
    found: list[Any] = []
    _look(model, found, seen)
    return tuple(found)


def tensors_of(model: nn.Module) -> list[Tensor]:
    """All parameters and buffers, also those that are not told apart by name."""
    return [
        tensor
        for module in model.modules()
        for kind in TENSORS
        for tensor in module.__dict__[kind].values()
        if tensor is not None
    ]


def _look(value: Any, found: list[Any], seen: dict[int, int]) -> None:
    kind = type(value)
    if kind in _PLAIN:
        found.append(value)
    elif kind in _MAPPINGS:
        for key, item in list(value.items()):
            found.append(key if type(key) in _PLAIN else None)
            _look(item, found, seen)
    elif kind in _CONTAINERS:
        for item in list(value):
            _look(item, found, seen)
    elif isinstance(value, nn.Module):
        _look_at_module(value, found, seen)
    elif kind in _FUNCTIONS:
        found.append(id(value))
    elif kind is types.MethodType:
        found.append(id(value.__func__))


def _look_at_module(module: nn.Module, found: list[Any], seen: dict[int, int]) -> None:
    if id(module) in seen:
        found.append(seen[id(module)])
        return
    seen[id(module)] = len(seen)
    found.append(type(module))
    # A list first: another thread may add an attribute meanwhile.
    for name, value in list(module.__dict__.items()):
        if name in _NO_MATTER or (type(value) in _MAPPINGS and not value):
            continue
        _look(value, found, seen)
