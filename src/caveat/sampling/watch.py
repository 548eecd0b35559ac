"""Whether anything that a survey of a model looked at has changed since.

A survey walks through all modules, at every call. What it finds hangs on nothing but
the objects that it met: if every container still holds the very same ones, it would
find the same again. That is asked here without a step of Python an object.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import is_, methodcaller
from typing import Any, final

_values = methodcaller("values")


@final
class Unchanged:
    """Containers, and what they held. It holds all of it, so that no name is reused."""

    def __init__(self) -> None:
        self._objects: list[Any] = []  # whose class may be exchanged
        self._classes: list[type] = []
        self._empty: list[Any] = []
        self._mappings: list[Mapping[Any, Any]] = []
        self._keys: list[Any] = []
        self._items: list[Any] = []
        self._sequences: list[Iterable[Any]] = []
        self._members: list[Any] = []
        self._sizes: list[int] = []
        self._long: list[Any] = []
        self._lengths: list[int] = []
        self._reads: list[tuple[Callable[[Any], list[Any]], Any, list[Any]]] = []

    def instance(self, value: Any, kind: type) -> None:
        """An object of this class."""
        self._objects.append(value)
        self._classes.append(kind)

    def mapping(self, value: Mapping[Any, Any]) -> None:
        """A dictionary, with its keys and values in their order."""
        if not value:
            self._empty.append(value)
            return
        keys, items = list(value), list(value.values())
        self._mappings.append(value)
        self._sizes.append(len(keys))
        self._keys += keys
        self._items += items

    def sequence(self, value: Any) -> None:
        """A list or a set, with its members."""
        members = list(value)
        self._sequences.append(value)
        self._long.append(value)
        self._lengths.append(len(members))
        self._members += members

    def length(self, value: Any) -> None:
        """A container that is too long to look at."""
        self._long.append(value)
        self._lengths.append(len(value))

    def reading(
        self, read: Callable[[Any], list[Any]], of: Any, found: list[Any]
    ) -> None:
        """What ``read(of)`` found, to be asked again."""
        if found:
            self._reads.append((read, of, found))

    def holds(self) -> bool:
        """Whether everything is as it was."""
        try:
            return (
                not any(self._empty)
                and list(map(len, self._mappings)) == self._sizes
                and list(map(len, self._long)) == self._lengths
                and all(map(is_, map(type, self._objects), self._classes))
                and all(map(is_, _all(map(_values, self._mappings)), self._items))
                and all(map(is_, _all(self._mappings), self._keys))
                and all(map(is_, _all(self._sequences), self._members))
                and all(_reads_same(*reading) for reading in self._reads)
            )
        except RuntimeError:  # another thread is changing a container just now
            return False


_all = chain.from_iterable


def _reads_same(read: Callable[[Any], list[Any]], of: Any, expected: list[Any]) -> bool:
    found = read(of)
    return len(found) == len(expected) and all(map(is_, found, expected))
