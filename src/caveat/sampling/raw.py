"""Numbers as they were drawn, before anything is done with them.

Some models draw a number and compare it with a bound that it cannot cross, a layer
dropped with probability 0 for instance: ``torch.rand([]) < 0``. The outcome is certain,
though its argument is drawn. To see that, it is kept here which storages hold nothing
but numbers of one law, and whether these were used for anything else.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef

from caveat._torch import storage_address
from caveat.sampling.dispatch import tensors_in, weak_storage
from caveat.sampling.noise import Law


@dataclass(slots=True)
class Raw:
    """The numbers of one site, and what became of them.

    Attributes
    ----------
    compared : bool
        They were compared with a bound that leaves no choice.
    used : bool
        Something else was done with them.
    """

    storage: StorageWeakRef
    law: Law
    compared: bool = False
    used: bool = False

    @property
    def idle(self) -> bool:
        """Whether nothing can depend on them, asked when the model has returned."""
        return self.compared and not self.used and self.storage.expired()


class RawNumbers:
    """The raw numbers of a pass by the storage that they fill."""

    def __init__(self) -> None:
        self._on: dict[int, Raw] = {}

    def add(self, tensor: Tensor, law: Law) -> Raw:
        """Note that the storage of ``tensor`` holds numbers of ``law`` alone."""
        raw = self._on[storage_address(tensor)] = Raw(weak_storage(tensor), law)
        return raw

    def move(self, source: Tensor, target: Tensor) -> None:
        """The numbers of ``source`` were copied to all of ``target``, and only there.

        A target that is part of a larger storage is given up: what else lies there is
        not known.
        """
        raw = self._on.pop(storage_address(source), None)
        whole = target.untyped_storage().nbytes() == target.numel() * target.itemsize
        if raw is not None and whole:
            raw.used, raw.storage = False, weak_storage(target)
            self._on[storage_address(target)] = raw

    def on(self, tensor: Any) -> Raw | None:
        """What ``tensor`` holds, if that is numbers as they were drawn."""
        if not self._on or not isinstance(tensor, Tensor):
            return None
        return self._on.get(storage_address(tensor))

    def leave(self, tensor: Any) -> None:
        """``tensor`` is handed to something that we cannot follow."""
        raw = self.on(tensor)
        if raw is not None:
            raw.used = True

    def read(self, storages: set[int], result: Any) -> None:
        """An operation on these storages gave ``result``; views are not yet a use."""
        for storage in storages & self._on.keys():
            addresses = [storage_address(t) for t in tensors_in((result,))]
            if not addresses or any(a != storage for a in addresses):
                self._on[storage].used = True

    def written(self, targets: Iterable[Tensor], arguments: Any) -> None:
        """An operation with these arguments wrote to ``targets``."""
        for tensor in tensors_in(arguments):
            self.leave(tensor)
        for tensor in targets:
            self._on.pop(storage_address(tensor), None)
