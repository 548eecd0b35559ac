"""What a model looks like: whether anything was changed since it was last seen.

What counts: classes, functions and hooks of all modules; plain values (a rate, a
switch) in their attributes, in objects, namespaces and containers held there, in what
their functions read besides (closures, defaults, globals, attributes of classes); and
which tensors, arrays and generators are held, by identity. What does not: weights, and
the training flag or what stands in for a call (``context.py``), as passes run on a copy
with flags and calls of its own.

It is asked for at every call. What a function may read is found once per function
(``reading.py``), and objects that are not modules are followed only so far. As long as
somebody keeps the last survey, and nothing that it met has changed (``watch.py``), it
is not made again.
"""

import functools
import random
import types
from collections import OrderedDict, defaultdict
from dataclasses import dataclass
from typing import Any, final
from weakref import WeakKeyDictionary, ref

import numpy as np
import torch
from torch import Tensor, nn

from caveat._torch import CALL, TENSORS
from caveat.sampling.reading import (
    is_foreign,
    read_by_function,
    read_of_class,
    slots_of,
)
from caveat.sampling.watch import Unchanged

_PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None)))
_VALUES = (torch.dtype, torch.device, torch.memory_format, np.generic, slice, range)
_MAPPINGS = frozenset((dict, OrderedDict, defaultdict))
_CONTAINERS = (dict, list, tuple, set, frozenset)
_CALLABLES = (types.FunctionType, types.MethodType, functools.partial)
_PARAMETERS, _BUFFERS = TENSORS
_NO_MATTER = frozenset(("training", CALL, *TENSORS))
_DEEP = 3  # objects within objects, functions that call functions
_MANY = 4000  # looks at what is not a module; the rest goes by identity
_LONG = 2000  # items of a container; a longer one goes by identity and length
Generator = (
    torch.Generator | random.Random | np.random.Generator | np.random.RandomState
)
_GENERATORS = (
    torch.Generator,
    random.Random,
    np.random.Generator,
    np.random.RandomState,
)

Fingerprint = tuple[Any, ...]


def fingerprint(model: nn.Module) -> Fingerprint:
    """Equal for a model that has not changed; it holds no part of the model."""
    return survey(model).fingerprint


def tensors_of(model: nn.Module) -> list[Tensor]:
    """Parameters and buffers of all modules, and tensors in plain attributes."""
    return survey(model).tensors


@final
@dataclass(frozen=True, eq=False)
class Survey:
    """What one walk through a model finds.

    ``seeds`` says that some function of the model mentions seeds or the state of a
    generator.
    """

    fingerprint: Fingerprint
    tensors: list[Tensor]
    generators: list[Generator]
    seeds: bool
    _watch: Unchanged  # which holds parts of the model: only its samplers keep a survey

    def holds(self) -> bool:
        """Whether another walk would find the same."""
        return self._watch.holds()


_last: "WeakKeyDictionary[nn.Module, ref[Survey]]" = WeakKeyDictionary()


def survey(model: nn.Module) -> Survey:
    """Walk through a model, unless the last survey is still there, and true."""
    known = _last.get(model)
    found = None if known is None else known()
    if found is None or not found.holds():
        walk = _Walk()
        walk.look_at_module(model)
        found = Survey(
            *(tuple(walk.found), walk.tensors, walk.generators, walk.seeds, walk.watch)
        )
        _last[model] = ref(found)
    return found


class _Walk:
    """A walk under way: what was found so far, and where it has been."""

    __slots__ = ("found", "generators", "left", "seeds", "seen", "tensors", "watch")

    def __init__(self) -> None:
        self.watch = Unchanged()
        self.found: list[Any] = []
        self.tensors: list[Tensor] = []
        self.generators: list[Generator] = []
        self.seeds = False
        self.seen: dict[int, int] = {}
        self.left = _MANY

    def look_at_module(self, module: nn.Module) -> None:
        if self._been_at(module):
            return
        found, kind = self.found, type(module)
        found.append(kind)
        if id(kind) not in self.seen:
            self.seen[id(kind)] = len(self.seen)
            values, seeds = read_of_class(kind)
            self.watch.reading(_values_of_class, kind, values)
            self._look_at(values, seeds, 0)
        state = module.__dict__
        self.watch.instance(module, kind)
        self.watch.mapping(state)
        tensors = self.tensors
        for held in (state.get(_PARAMETERS), state.get(_BUFFERS)):
            if held is not None:
                self.watch.mapping(held)
                tensors.extend([t for t in list(held.values()) if t is not None])
        # A list first: another thread may add an attribute meanwhile.
        for name, value in list(state.items()):
            kind = type(value)
            if kind in _PLAIN:
                if name != "training":
                    found.append(name)
                    found.append(value)
            elif name in _NO_MATTER:
                continue
            elif kind in _MAPPINGS and not value:  # hooks, most of the time
                self.watch.mapping(value)
            else:
                found.append(name)
                self._look(value, 0)

    def _been_at(self, value: Any) -> bool:
        number = self.seen.get(id(value))
        if number is None:
            self.seen[id(value)] = len(self.seen)
            return False
        self.found.append(number)
        return True

    def _look(self, value: Any, depth: int) -> None:
        kind = type(value)
        if kind in _PLAIN:
            self.found.append(value)
        elif isinstance(value, nn.Module):
            self.look_at_module(value)
        elif self.left <= 0:
            self.found.append(id(value))
        else:
            self.left -= 1
            self._look_inside(value, kind, depth)

    def _look_inside(self, value: Any, kind: type, depth: int) -> None:
        if isinstance(value, Tensor):
            self.tensors.append(value)
            self.found.append(id(value))
        elif isinstance(value, _CONTAINERS):
            self._look_at_items(value, depth)
        elif isinstance(value, _CALLABLES):
            self._look_at_callable(value, depth)
        elif isinstance(value, _VALUES):
            self.found.append(value)
        elif isinstance(value, _GENERATORS):
            self.generators.append(value)
            self.found.append(id(value))
        else:
            self._look_at_object(value, kind, depth)

    def _look_at_items(self, value: Any, depth: int) -> None:
        self.found.append(len(value))
        if len(value) > _LONG:
            self.found.append(id(value))
            self.watch.length(value)
        elif isinstance(value, dict):
            self.watch.mapping(value)
            for key, item in list(value.items()):
                self.found.append(key if type(key) in _PLAIN else id(key))
                self._look(item, depth)
        else:
            if not isinstance(value, tuple | frozenset):
                self.watch.sequence(value)
            for item in list(value):
                self._look(item, depth)

    def _look_at_callable(self, value: Any, depth: int) -> None:
        if isinstance(value, types.FunctionType):
            self._look_at_function(value, depth)
        elif isinstance(value, types.MethodType):
            self._look(value.__func__, depth)
            self._look(value.__self__, depth)
        else:
            for part in (value.func, value.args, value.keywords):
                self._look(part, depth)

    def _look_at_object(self, value: Any, kind: type, depth: int) -> None:
        """Plain values in the attributes of an object, such as a configuration."""
        self.found.append(id(value))
        if depth >= _DEEP or is_foreign(kind) or self._been_at(value):
            return
        self.watch.instance(value, kind)
        stored = getattr(value, "__dict__", None)
        if stored is not None:
            self.watch.mapping(stored)
        slots = slots_of(value)
        self.watch.reading(slots_of, value, slots)
        for name, item in (*list((stored or {}).items()), *_pairs(slots)):
            self.found.append(name)
            self._look(item, depth + 1)

    def _look_at_function(self, function: types.FunctionType, depth: int) -> None:
        self.found.append(id(function))
        if depth <= _DEEP and not self._been_at(function):
            values, seeds = read_by_function(function)
            if values:  # it is no function of torch; notebooks exchange its code
                self.found.append(function.__code__)
                code = [function.__code__, *values]
                self.watch.reading(_values_of_function, function, code)
            self._look_at(values, seeds, depth + 1)

    def _look_at(self, values: list[Any], seeds: bool, depth: int) -> None:
        """What code reads besides its arguments."""
        self.seeds = self.seeds or seeds
        for value in values:
            self._look(value, depth)


def _values_of_class(kind: type) -> list[Any]:
    return read_of_class(kind)[0]


def _values_of_function(function: types.FunctionType) -> list[Any]:
    return [function.__code__, *read_by_function(function)[0]]


def _pairs(flat: list[Any]) -> list[tuple[str, Any]]:
    return list(zip(flat[::2], flat[1::2], strict=True))
