"""What the code of a model reads besides its arguments: where to look for changes.

A function reads the globals that it names, the cells that it closes over and its
defaults; a method also reads attributes of its class. Where these are is found once per
function or class. Code of torch, numpy and the standard library is not looked at: what
it reads does not change a model's way.
"""

import argparse
import sys
import types
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

_FOREIGN = frozenset(("torch", "numpy", "caveat", *sys.stdlib_module_names))
_FOREIGN -= {"__main__"}
_KNOWN = frozenset((types.SimpleNamespace, argparse.Namespace))
_SEEDING = ("seed", "rng", "set_state")
_ENTRIES = ("forward", "__call__", "__getattr__")  # where a pass enters a class
_NO_VALUES = (types.ModuleType, types.BuiltinFunctionType, type, property)


class Reads(NamedTuple):
    """Names that are read: of the classes of a method resolution order, or of globals.

    ``seeds`` says that the code mentions seeds or the state of a generator. Nothing
    here holds a class, a function or what it closes over.
    """

    places: tuple[tuple[Any, str], ...]
    seeds: bool


_of_classes: "WeakKeyDictionary[type, Reads]" = WeakKeyDictionary()
_of_code: "WeakKeyDictionary[types.CodeType, Reads]" = WeakKeyDictionary()


def read_of_class(kind: type) -> tuple[list[Any], bool]:
    """The methods and attributes that a pass may use, and whether they seed."""
    reads = _of_classes.get(kind)
    if reads is None:
        reads = _of_classes[kind] = _class_reads(kind)
    order = kind.__mro__
    values = [_unwrapped(order[i].__dict__.get(name)) for i, name in reads.places]
    return values, reads.seeds


def read_by_function(function: types.FunctionType) -> tuple[list[Any], bool]:
    """What a function closes over, its defaults and globals, and whether it seeds."""
    reads = _of_code.get(function.__code__)
    if reads is None:
        reads = _of_code[function.__code__] = _reads(function)
    values = [space.get(name) for space, name in reads.places]
    if _package(function) not in _FOREIGN:
        values += [_contents(cell) for cell in function.__closure__ or ()]
        values += [function.__defaults__, function.__kwdefaults__]
    return values, reads.seeds


@lru_cache(1024)
def is_foreign(kind: type) -> bool:
    """Whether objects of this class are none of the user's, and hold nothing of it."""
    return kind not in _KNOWN and _package(kind) in _FOREIGN


def slots_of(value: Any) -> list[Any]:
    """What an object has in slots: a name, its value, the next name, …"""
    kind: Any = type(value)
    found: list[Any] = []
    for name in _slots(kind):
        if hasattr(value, name):
            found += (name, getattr(value, name))
    return found


@lru_cache(1024)
def _slots(kind: type) -> tuple[str, ...]:
    names: list[str] = []
    for base in kind.__mro__:
        slots = vars(base).get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _package(code: Any) -> str:
    return str(getattr(code, "__module__", None) or "").partition(".")[0]


def _reads(function: types.FunctionType) -> Reads:
    if _package(function) in _FOREIGN:
        return Reads((), False)
    names, space = _names(function.__code__), function.__globals__
    found = [_in_global(space, name, names) for name in sorted(names & space.keys())]
    return Reads(tuple(chain.from_iterable(found)), _mentions_seeds(names))


def _in_global(space: dict[str, Any], name: str, names: frozenset[str]) -> list[Any]:
    """A global itself; or what is read of it, if it is a module or a class."""
    value = space[name]
    if isinstance(value, types.FunctionType):
        return [] if _package(value) in _FOREIGN else [(space, name)]
    if not isinstance(value, _NO_VALUES):
        return [(space, name)]
    if not isinstance(value, types.ModuleType | type) or _is_foreign_space(value):
        return []
    inside = vars(value)
    return [
        (inside, key)
        for key in sorted(names & inside.keys())
        if not isinstance(inside[key], _NO_VALUES)
    ]


def _is_foreign_space(value: Any) -> bool:
    if isinstance(value, types.ModuleType):
        return value.__name__.partition(".")[0] in _FOREIGN
    return _package(value) in _FOREIGN


def _class_reads(kind: type) -> Reads:
    """What a forward pass reads of a class and its bases, torch's aside.

    Methods that no name used in ``forward`` leads to are left out, with what they read.
    """
    spaces = [
        (i, vars(base))
        for i, base in enumerate(kind.__mro__)
        if _package(base) not in _FOREIGN
    ]
    names, used = set(_ENTRIES), set[str]()
    while names - used:
        used |= names
        for _, space in spaces:
            for name in used & space.keys():
                names |= _names_in(space[name])
    places = [
        (i, name)
        for i, space in spaces
        for name in sorted(used & space.keys())
        if not isinstance(_unwrapped(space[name]), _NO_VALUES)
    ]
    return Reads(tuple(places), _mentions_seeds(frozenset(used)))


def _names_in(value: Any) -> frozenset[str]:
    value = _unwrapped(value)
    is_code = isinstance(value, types.FunctionType)
    return _names(value.__code__) if is_code else frozenset()


def _mentions_seeds(names: frozenset[str]) -> bool:
    return any(word in name for name in names for word in _SEEDING)


def _unwrapped(value: Any) -> Any:
    if isinstance(value, staticmethod | classmethod):
        return value.__func__
    return value.fget if isinstance(value, property) else value


def _names(code: types.CodeType) -> frozenset[str]:
    """All names that code uses for globals and attributes, in functions inside, too."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return frozenset(names)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
