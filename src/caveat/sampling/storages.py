"""What is known of the storages of a pass: which it made, and which noise has reached.

What a tensor depends on is followed by *storage*, never by tensor: a view of a noisy
tensor is noisy however it was made.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from caveat._torch import storage_address
from caveat.sampling.dispatch import tensors_in, weak_storage


@dataclass(frozen=True, slots=True)
class Tracked:
    """A storage that is on the tape.

    Attributes
    ----------
    storage : StorageWeakRef
        Keeps the address from being used again.
    base : int
        A value on this storage, from which unknown views are made.
    group : int
        The group of the tape that its values belong to.
    noisy : bool
        Whether noise has reached it.
    """

    storage: StorageWeakRef
    base: int
    group: int
    noisy: bool


class Storages:
    """The storages of a pass, by their addresses."""

    def __init__(self) -> None:
        self._fresh: dict[int, StorageWeakRef] = {}  # made in this pass
        self._tracked: dict[int, Tracked] = {}
        self._noisy = 0  # how many are
        self._groups = 0
        self._sweep_beyond = 2  # storages; then those that are gone are forgotten

    def add(self, tensor: Tensor) -> None:
        """Note that the pass has made ``tensor``."""
        self._fresh[storage_address(tensor)] = weak_storage(tensor)

    def add_result(self, result: Any, inputs: set[int]) -> None:
        """Note what an operation on ``inputs`` has made."""
        for tensor in tensors_in((result,)):
            storage = storage_address(tensor)
            if storage not in inputs and storage not in self._fresh:
                self._fresh[storage] = weak_storage(tensor)

    def is_fresh(self, storage: int) -> bool:
        """Whether this pass has made it."""
        return storage in self._fresh

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` existed before the pass."""
        return storage_address(tensor) not in self._fresh

    def tracked(self, storage: int) -> Tracked | None:
        """What is known of a storage that is on the tape."""
        return self._tracked.get(storage)

    def track(self, tensor: Tensor, base: int, group: int, *, noisy: bool) -> Tracked:
        """The storage of ``tensor`` is on the tape now, with ``base`` as its value."""
        tracked = Tracked(weak_storage(tensor), base, group, noisy)
        self._tracked[storage_address(tensor)] = tracked
        self._noisy += noisy
        return tracked

    def new_group(self) -> int:
        """A number for values that share memory with no earlier ones."""
        self._groups += 1
        return self._groups

    def matter(self, storages: set[int]) -> bool:
        """Whether any of these is tracked, or from before the pass."""
        return any(s in self._tracked or s not in self._fresh for s in storages)

    @property
    def has_noise(self) -> bool:
        """Whether any value that is still there depends on noise."""
        return bool(self._noisy)

    def is_noisy(self, tensor: Any) -> bool:
        """Whether the value of ``tensor`` depends on noise."""
        if not self._noisy or not isinstance(tensor, Tensor):
            return False
        return self.noise_on(storage_address(tensor))

    def noise_on(self, storage: int) -> bool:
        """Whether noise has reached a storage."""
        tracked = self._tracked.get(storage)
        return tracked is not None and tracked.noisy

    def noise_on_any(self, storages: set[int]) -> bool:
        """Whether noise has reached any of these."""
        return bool(self._noisy) and any(map(self.noise_on, storages))

    def sweep(self) -> None:
        """Let go of storages that are gone: even their headers break up the heap."""
        if len(self._fresh) + len(self._tracked) <= self._sweep_beyond:
            return
        for storage in [k for k, weak in self._fresh.items() if weak.expired()]:
            del self._fresh[storage]
        for storage in [k for k, t in self._tracked.items() if t.storage.expired()]:
            self._noisy -= self._tracked.pop(storage).noisy
        alive = len(self._fresh) + len(self._tracked)
        self._sweep_beyond = alive + max(4, alive // 8)
