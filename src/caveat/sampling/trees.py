"""What goes into a model and comes out of it, as a flat list of leaves.

Torch's pytrees know tuples, lists, dicts and registered classes; everything else is a
leaf to them, with whatever tensors it holds. A tensor that is not found is neither
drawn again nor copied, which would be wrong without a word. So objects are opened here:
dataclasses and their like, kin of dicts and lists, and objects of any other class that
is written in Python. An object is put together again as a new one of its class.
"""

import types
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from caveat._torch import pytree

_CLOSED = (Tensor, nn.Module, Enum, BaseException, torch.Size, type)
_DEEPEST = 12  # objects inside objects


class _Object(NamedTuple):
    """An object that was opened: its class, and the names of its items and attributes.

    Items come first: keys of a kin of dict, numbers of a kin of list or tuple.
    """

    kind: type
    items: tuple[Any, ...]
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Structure:
    """How leaves make up a value.

    Attributes
    ----------
    spec : pytree.TreeSpec
        As torch sees it.
    objects : tuple of (_Object, Structure) or None
        For each leaf of ``spec``: None, or what it is made of in turn.
    """

    spec: pytree.TreeSpec
    objects: tuple[tuple[_Object, "Structure"] | None, ...]

    @property
    def n_leaves(self) -> int:
        """How many leaves there are."""
        return sum(1 if found is None else found[1].n_leaves for found in self.objects)

    @property
    def key(self) -> Any:
        """Equal for structures that are made in the same way."""
        return str(self.spec), tuple(
            None if found is None else (found[0], found[1].key)
            for found in self.objects
        )

    def __str__(self) -> str:
        opened = [
            f"{o.kind.__qualname__}{(*o.items, *o.attributes)}={inside}"
            for o, inside in (found for found in self.objects if found is not None)
        ]
        return " ".join([str(self.spec), *opened])


def flatten(value: Any) -> tuple[list[Any], Structure]:
    """The leaves of a value, and how it is put together again."""
    return _flatten(value, ())


def leaves_of(value: Any) -> list[Any]:
    """The leaves of a value."""
    return flatten(value)[0]


def unflatten(leaves: Sequence[Any], structure: Structure) -> Any:
    """A value of this structure; containers and objects are new ones."""
    taken = iter(leaves)
    return _build(taken, structure)


def _build(leaves: Iterator[Any], structure: Structure) -> Any:
    parts = [
        next(leaves) if found is None else _assemble(found[0], _build(leaves, found[1]))
        for found in structure.objects
    ]
    return pytree.tree_unflatten(parts, structure.spec)


def _flatten(value: Any, above: tuple[int, ...]) -> tuple[list[Any], Structure]:
    raw, spec = pytree.tree_flatten(value)
    leaves: list[Any] = []
    objects: list[tuple[_Object, Structure] | None] = []
    for leaf in raw:
        opened = None if id(leaf) in above else _open(leaf)
        if opened is None or len(above) == _DEEPEST:
            leaves.append(leaf)
            objects.append(None)
            continue
        inner, inside = _flatten(opened[1], (*above, id(leaf)))
        leaves += inner
        objects.append((opened[0], inside))
    return leaves, Structure(spec, tuple(objects))


def _open(leaf: Any) -> tuple[_Object, list[Any]] | None:
    """The class of an object and what it holds; None for what stays closed."""
    kind = type(leaf)
    if kind in _PLAIN or isinstance(leaf, _CLOSED):
        return None
    base = next((b for b in (dict, list, tuple) if isinstance(leaf, b)), None)
    if base is None and not _is_written_in_python(kind):
        return None
    items: list[Any] = []
    if base is not None:
        items = list(leaf) if base is dict else list(range(len(leaf)))
    names = _attributes(leaf)
    values = [base.__getitem__(leaf, i) for i in items] if base is not None else []
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


def _assemble(made: _Object, values: list[Any]) -> Any:
    kind, items = made.kind, made.items
    own, rest = values[: len(items)], values[len(items) :]
    if issubclass(kind, tuple):
        value: Any = tuple.__new__(kind, own)
    else:
        value = kind.__new__(kind)
    if issubclass(kind, dict):
        keep = OrderedDict if issubclass(kind, OrderedDict) else dict
        for key, item in zip(items, own, strict=True):
            keep.__setitem__(value, key, item)
    elif issubclass(kind, list):
        list.extend(value, own)
    for name, attribute in zip(made.attributes, rest, strict=True):
        object.__setattr__(value, name, attribute)
    return value


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
