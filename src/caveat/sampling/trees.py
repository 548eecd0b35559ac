"""What goes into a model and comes out of it, as a flat list of leaves.

Torch's pytrees know tuples, lists, dicts and registered classes; everything else is a
leaf to them, with whatever tensors it holds. A tensor that is not found is neither
drawn again nor copied, which would be wrong without a word. So objects are opened here:
dataclasses and their like, kin of dicts and lists, and objects of any other class that
is written in Python. An object is put together again as a new one of its class, and
one that was met twice, or holds itself, as one.
"""

import types
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from caveat._torch import pytree

_CLOSED = (Tensor, nn.Module, Enum, BaseException, torch.Size, type)
_DEEPEST = 12  # objects inside objects


class _Object(NamedTuple):
    """An object that was opened: its class, and the names of its items and attributes.

    Items come first: keys of a kin of dict, numbers of a kin of list, tuple or set.
    """

    kind: type
    items: tuple[Any, ...]
    attributes: tuple[str, ...]


class _Again(NamedTuple):
    """An object that was met before: its number among those that were opened."""

    number: int


@dataclass(frozen=True)
class Structure:
    """How leaves make up a value.

    Attributes
    ----------
    spec : pytree.TreeSpec
        As torch sees it.
    objects : tuple of (_Object, Structure), _Again or None
        For each leaf of ``spec``: None, or what it is made of in turn.
    """

    spec: pytree.TreeSpec
    objects: tuple["tuple[_Object, Structure] | _Again | None", ...]

    @cached_property
    def is_leaf(self) -> bool:
        """Whether the value is a leaf itself: a model that returns one tensor."""
        return self.spec.is_leaf() and self.objects == (None,)

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return sum(1 for _ in self.inside())

    @cached_property
    def key(self) -> Any:
        """Equal for structures that are made in the same way."""
        return str(self.spec), tuple(
            found
            if found is None or isinstance(found, _Again)
            else (found[0], found[1].key)
            for found in self.objects
        )

    def classes(self) -> Iterator[type]:
        """The classes of all objects."""
        for found in self.objects:
            if found is not None and not isinstance(found, _Again):
                yield found[0].kind
                yield from found[1].classes()

    def inside(self) -> Iterator[bool]:
        """For each leaf, whether it is inside an object."""
        return (bool(kinds) for kinds in self.kinds())

    def kinds(self, above: tuple[type, ...] = ()) -> Iterator[tuple[type, ...]]:
        """For each leaf, the classes of the objects that it is in, outermost first."""
        for found in self.objects:
            if found is None:
                yield above
            elif not isinstance(found, _Again):
                yield from found[1].kinds((*above, found[0].kind))

    def __str__(self) -> str:
        opened = [
            str(found)
            if isinstance(found, _Again)
            else f"{found[0].kind.__qualname__}"
            f"{(*found[0].items, *found[0].attributes)}={found[1]}"
            for found in self.objects
            if found is not None
        ]
        return " ".join([str(self.spec), *opened])


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of a value, and how it is put together again."""
    return _Opening().flatten(value, ())


def flatten_call(
    args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Any], Structure]:
    """The leaves of ``(args, kwargs)``; quick if they are plain tensors."""
    if all(type(v) is Tensor for v in (*args, *kwargs.values())):
        return [*args, *kwargs.values()], _of_tensors(len(args), tuple(kwargs))
    return flatten((args, dict(kwargs)))


@lru_cache(256)
def _of_tensors(n_args: int, names: tuple[str, ...]) -> Structure:
    return flatten(((None,) * n_args, dict.fromkeys(names)))[1]


def leaves_of(value: Any) -> list[Any]:
    """The leaves of a value."""
    return flatten(value)[0]


def unflatten(leaves: Sequence[Any], structure: Structure) -> Any:
    """A value of this structure; containers and objects are new ones."""
    if structure.is_leaf:
        return leaves[0]
    return _Building(leaves).build(structure)


def objects_of(leaves: Sequence[Any], structure: Structure) -> list[Any]:
    """The objects in a value of this structure, made anew, outer ones first."""
    building = _Building(leaves)
    building.build(structure)
    return building.made


def mapped(value: Any, on_tensor: Callable[[Tensor], Tensor]) -> Any:
    """The value made anew, with ``on_tensor`` of each tensor in it."""
    leaves, structure = flatten(value)
    return unflatten(
        [on_tensor(v) if isinstance(v, Tensor) else v for v in leaves], structure
    )


class _Building:
    """One value under way; ``made`` are its objects, in the order of their opening."""

    def __init__(self, leaves: Sequence[Any]) -> None:
        self._leaves = iter(leaves)
        self.made: list[Any] = []

    def build(self, structure: Structure) -> Any:
        parts = [self._part(found) for found in structure.objects]
        return pytree.tree_unflatten(parts, structure.spec)

    def _part(self, found: "tuple[_Object, Structure] | _Again | None") -> Any:
        if found is None:
            return next(self._leaves)
        if isinstance(found, _Again):
            return self.made[found.number]
        opened, inside = found
        number = len(self.made)
        self.made.append(None if issubclass(opened.kind, tuple) else _empty(opened))
        values = self.build(inside)
        if issubclass(opened.kind, tuple):
            own = values[: len(opened.items)]
            self.made[number] = tuple.__new__(opened.kind, own)
        _fill(self.made[number], opened, values)
        return self.made[number]


class _Opening:
    """One walk through a value; an object that is met twice stays one."""

    def __init__(self) -> None:
        # Objects by identity, which are kept so that it is theirs alone.
        self._met: dict[int, tuple[int, Any]] = {}

    def flatten(
        self, value: Any, above: tuple[int, ...]
    ) -> tuple[list[Any], Structure]:
        # A size stays whole: torch would put it together again as a tuple.
        raw, spec = pytree.tree_flatten(value, lambda v: type(v) is torch.Size)
        leaves: list[Any] = []
        objects: list[tuple[_Object, Structure] | _Again | None] = []
        for leaf in raw:
            met = self._met.get(id(leaf))
            # A tuple that holds itself cannot be made before what it holds.
            if met is not None and not (id(leaf) in above and isinstance(leaf, tuple)):
                objects.append(_Again(met[0]))
                continue
            opened = None if met is not None else _open(leaf)
            if opened is None or len(above) == _DEEPEST:
                leaves.append(leaf)
                objects.append(None)
                continue
            self._met[id(leaf)] = len(self._met), leaf
            inner, inside = self.flatten(opened[1], (*above, id(leaf)))
            leaves += inner
            objects.append((opened[0], inside))
        return leaves, Structure(spec, tuple(objects))


def _open(leaf: Any) -> tuple[_Object, list[Any]] | None:
    """The class of an object and what it holds; None for what stays closed."""
    kind = type(leaf)
    if kind in _PLAIN or isinstance(leaf, _CLOSED):
        return None
    base: Any = next((b for b in (dict, list, tuple, set) if isinstance(leaf, b)), None)
    items: list[Any] = []
    values: list[Any] = []
    if base is dict:
        items = list(leaf)
        values = [dict.__getitem__(leaf, key) for key in items]
    elif base is not None:
        values = list(base.__iter__(leaf))
        items = list(range(len(values)))
    elif not _is_written_in_python(kind):
        return None
    names = _attributes(leaf)
    values += [getattr(leaf, name) for name in names]
    return _Object(kind, tuple(items), tuple(names)), values


_PLAIN = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None), slice, range),
        *(types.FunctionType, types.BuiltinFunctionType, types.MethodType),
        *(torch.dtype, torch.device),
    }
)


def _is_written_in_python(kind: type) -> bool:
    """Whether an object can be made anew from its attributes alone."""
    if kind is types.SimpleNamespace:
        return True
    make: Any = kind.__new__
    return make is object.__new__ and all(
        base is object or base.__flags__ & _ON_HEAP for base in kind.__mro__
    )


_ON_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: the class was made by a class statement


def _attributes(leaf: Any) -> list[str]:
    names = list(getattr(leaf, "__dict__", ()))
    for base in type(leaf).__mro__:
        slots = base.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    private = ("__dict__", "__weakref__")
    return [n for n in dict.fromkeys(names) if n not in private and hasattr(leaf, n)]


def _empty(opened: _Object) -> Any:
    kind: Any = opened.kind
    return kind.__new__(kind)


def _fill(value: Any, opened: _Object, values: list[Any]) -> None:
    kind, items = opened.kind, opened.items
    own, rest = values[: len(items)], values[len(items) :]
    if issubclass(kind, dict):
        keep = OrderedDict if issubclass(kind, OrderedDict) else dict
        for key, item in zip(items, own, strict=True):
            keep.__setitem__(value, key, item)
    elif issubclass(kind, list):
        list.extend(value, own)
    elif issubclass(kind, set):
        set.update(value, own)
    for name, attribute in zip(opened.attributes, rest, strict=True):
        object.__setattr__(value, name, attribute)


def stackable(leaves: Sequence[Any], structure: Structure) -> list[bool]:
    """For each leaf, whether it may get another axis in front.

    Only tensors may. Dataclasses and their like are what their fields are, but an
    object of another class may hold numbers that belong to the shapes of its tensors,
    as a distribution or a cache does: such an object is left as it is.
    """
    return _stackable(iter(leaves), structure)


def _stackable(leaves: Iterator[Any], structure: Structure) -> list[bool]:
    found: list[bool] = []
    for opened in structure.objects:
        if opened is None:
            found.append(isinstance(next(leaves), Tensor))
            continue
        if isinstance(opened, _Again):
            continue
        made, inside = opened
        own = [next(leaves) for _ in range(inside.n_leaves)]
        whole = _is_record(made) or all(isinstance(v, _HARMLESS) for v in own)
        deeper = _stackable(iter(own), inside)
        found += deeper if whole else [False] * len(own)
    return found


_HARMLESS = (Tensor, bool, str, type(None))


def _is_record(made: _Object) -> bool:
    return (
        is_dataclass(made.kind)
        or hasattr(made.kind, "__attrs_attrs__")
        or made.kind is types.SimpleNamespace
        or issubclass(made.kind, dict | list)
    )
