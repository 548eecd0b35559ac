"""No write reaches a tensor that existed before the pass: it goes to a private copy."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from caveat._torch import storage_address
from caveat.sampling.dispatch import same_place, storage_copy
from caveat.sampling.sparse import parts, rebuilt


@dataclass(frozen=True, slots=True)
class _PrivateCopy:
    outside: Tensor  # keeps the address from being used again
    copy: Tensor


class PrivateCopies:
    """Copies of outside storages (inputs, parameters, buffers) that were written to."""

    def __init__(self) -> None:
        self._copies: dict[int, _PrivateCopy] = {}

    def __bool__(self) -> bool:
        return bool(self._copies)

    def __contains__(self, storage: int) -> bool:
        return storage in self._copies

    def make(self, tensor: Tensor) -> Tensor:
        """Copy the storage of ``tensor``, for good."""
        copy = storage_copy(tensor)
        self._copies[storage_address(tensor)] = _PrivateCopy(tensor, copy)
        return copy

    def of(self, tensor: Tensor) -> Tensor:
        """What ``tensor`` is on the copy of its storage; itself if there is none."""
        held = self._copies.get(storage_address(tensor))
        return tensor if held is None else same_place(tensor, held.copy)

    def instead(self, arguments: Iterable[Any]) -> tuple[Any, ...]:
        """``arguments``, with our copies for outside tensors that were written."""
        return tuple(map(self.replace, arguments))

    def replace(self, argument: Any) -> Any:
        """:meth:`of` for an argument of any kind."""
        if isinstance(argument, Tensor):
            if not any(storage_address(p) in self for p in parts(argument)):
                return argument
            return rebuilt(argument, self.of)
        if isinstance(argument, list | tuple):
            return type(argument)(map(self.replace, argument))
        return argument
