"""A value that is worked out when it is first asked for."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar, final

Value = TypeVar("Value")


@final
class Late(Generic[Value]):
    """What ``make(*args)`` gives, made once. Two threads may make the same twice."""

    def __init__(self, make: Callable[..., Value], *args: Any) -> None:
        self._make: Callable[..., Value] | None = make
        self._args = args
        self._found: list[Value] = []

    @property
    def value(self) -> Value:
        """The value."""
        make, args = self._make, self._args
        if not self._found:
            assert make is not None
            self._found = [make(*args)]
            self._make, self._args = None, ()
        return self._found[0]
