"""The tape of a pass while it is written: which tensor is which of its values.

A tensor gets its number when it is first read or made. One from before the pass is a
*source*; one that was made of nothing is a constant; of a view that was made out of
sight it is known which storage it shows.
"""

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from caveat._torch import storage_address
from caveat.sampling.checks import SameValues
from caveat.sampling.dispatch import same_place
from caveat.sampling.noise import NoiseSpec
from caveat.sampling.sparse import is_sparse, parts, rebuilt
from caveat.sampling.storages import Storages, Tracked
from caveat.sampling.tape import Op, Ref, Tape

_aten = torch.ops.aten


class Transcript:
    """What is written down of a pass.

    Attributes
    ----------
    tape : Tape
        What depends on outside tensors and on noise, in the order of the pass.
    sources : dict of int to Tensor
        The tensors from before the pass among its values.
    kept : dict of int to Tensor
        Values without noise that noisy operations have read, as they were then.
    escape : str or None
        How a noisy value reached Python, after which another draw may take another
        path: then every draw runs the model.
    bound : str or None
        Why the tape is good for this very batch only.
    where : str
        Path of the module that is running, noted on the tape.
    storages : Storages
        What the pass has made so far, and what noise has reached.
    """

    def __init__(self, storages: Storages) -> None:
        self.tape = Tape()
        self.sources: dict[int, Tensor] = {}
        self.kept: dict[int, Tensor] = {}
        self.escape: str | None = None
        self.bound: str | None = None
        self.where = ""
        self.storages = storages
        self._numbers = WeakTensorKeyDictionary()  # tracked tensor -> its value
        self._constants: dict[int, int] = {}  # id of a constant -> its value
        self._read_on: dict[int, list[int]] = {}  # storage -> constants, kept values

    # ------------------------------------------------------------ operations

    def append(self, op: Op) -> None:
        """Put an operation onto the tape."""
        op.path = self.where
        self.tape.ops.append(op)

    def add_noise(self, tensor: Tensor, spec: NoiseSpec) -> None:
        """Put a noise onto the tape, of which ``tensor`` is what was drawn."""
        self.tape.noises[self.number_result(tensor, noisy=True)] = spec

    def check_values(self, tensor: Tensor) -> None:
        """Put a check of all values onto the tape; drawn ones end the recording."""
        if self.storages.is_noisy(tensor):
            self.escape = self.escape or "drawn values decide what a rule does"
            return
        if is_sparse(tensor):
            self.bound = "values of a sparse tensor decide what is done"
            return
        args = (self.ref(tensor, noisy=False),)
        check = SameValues(tensor.detach().clone())
        self.append(Op(check, args, {}, (), True, noisy=False))

    def output(self, out: Any) -> Any:
        """An output as a ref, or as it is if nothing can change it."""
        if not isinstance(out, Tensor):
            return out
        if not self.storages.matter({storage_address(out)}):
            return out
        return Ref(self.number(out, noisy=True))

    # ------------------------------------------------------------ numbers

    def refs(self, args: Any, *, noisy: bool) -> tuple[Any, ...]:
        """:meth:`ref` of each argument."""
        return tuple(self.ref(argument, noisy=noisy) for argument in args)

    def keyword_refs(self, kwargs: dict[str, Any], *, noisy: bool) -> dict[str, Any]:
        """:meth:`ref` of each keyword argument."""
        return {name: self.ref(value, noisy=noisy) for name, value in kwargs.items()}

    def ref(self, argument: Any, *, noisy: bool) -> Any:
        """``argument`` with refs for its tensors, as a (noisy) operation reads it."""
        if isinstance(argument, Tensor):
            return Ref(self.number(argument, noisy=noisy))
        if isinstance(argument, list | tuple):
            return type(argument)(self.ref(item, noisy=noisy) for item in argument)
        return argument

    def number(self, tensor: Tensor, *, noisy: bool) -> int:
        """The value that ``tensor`` is, as a (noisy) operation reads it."""
        if is_sparse(tensor):
            self.bound = "patterns of sparse tensors are not compared"
        storage = storage_address(tensor)
        tracked = self.storages.tracked(storage)
        if tracked is None and self.storages.is_fresh(storage):
            return self.constant(tensor)
        if tracked is None:
            tracked = self._source(tensor)
        number = self._tracked_number(tensor, tracked)
        if noisy and not tracked.noisy and number not in self.kept:
            self.kept[number] = tensor.detach() if tensor.requires_grad else tensor
            self._note_reading(tensor, number)
        return number

    def number_result(self, tensor: Tensor, *, noisy: bool) -> int:
        """A new value, for a tensor that an operation on the tape has made."""
        tracked = self.storages.tracked(storage_address(tensor))
        if tracked is None:
            group = self.storages.new_group()
            number = self.tape.new_value(tensor, group)
            self.storages.track(tensor, number, group, noisy=noisy)
        else:
            number = self.tape.new_value(tensor, tracked.group)
        self._numbers[tensor] = number
        return number

    def constant(self, tensor: Tensor) -> int:
        """The value of a tensor that was made of nothing."""
        number = self._constants.get(id(tensor))
        if number is None:
            number = self.tape.add_constant(tensor, group=-1)
            self._constants[id(tensor)] = number  # the tape keeps it, so the id stays
            self._note_reading(tensor, number)
        return number

    def _source(self, tensor: Tensor) -> Tracked:
        """A tensor from before the pass, met for the first time."""
        group = self.storages.new_group()
        number = self.tape.new_value(tensor, group)
        self.sources[number] = tensor
        self._numbers[tensor] = number
        return self.storages.track(tensor, number, group, noisy=False)

    def _tracked_number(self, tensor: Tensor, tracked: Tracked) -> int:
        number: int | None = self._numbers.get(tensor)
        if number is not None and self.tape.values[number].group == tracked.group:
            return number
        # A view made out of sight, or from before the first write.
        number = self.tape.new_value(tensor, tracked.group)
        self._numbers[tensor] = number
        if tracked.base in self.sources:
            self.sources[number] = tensor
            return number
        if is_sparse(tensor):
            self.escape = "a sparse tensor was written through its values"
            return number
        where = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        args, op = (Ref(tracked.base), *where), _aten.as_strided.default
        self.append(Op(op, args, {}, (number,), noisy=tracked.noisy))
        return number

    # ------------------------------------------------------------ what was read

    def _note_reading(self, tensor: Tensor, number: int) -> None:
        for part in parts(tensor):
            self._read_on.setdefault(storage_address(part), []).append(number)

    def was_read(self, storage: int) -> bool:
        """Whether constants or kept values lie on a storage."""
        return storage in self._read_on

    def read_on(self, storage: int) -> list[int]:
        """The constants and kept values on a storage, which may move from there now."""
        return self._read_on.pop(storage, [])

    def move_constant(self, number: int, storage: int, copy: Tensor) -> None:
        """A constant on ``storage``, about to be written, is on ``copy`` from now."""
        old = self.tape.constants[number]
        self._constants.pop(id(old), None)  # parts of a sparse one move in turn
        self.tape.constants[number] = _moved(old, storage, copy)

    def move_kept(self, number: int, storage: int, copy: Tensor) -> None:
        """:meth:`move_constant` for a value that is kept."""
        self.kept[number] = _moved(self.kept[number], storage, copy)


def _moved(tensor: Tensor, storage: int, copy: Tensor) -> Tensor:
    def place(part: Tensor) -> Tensor:
        there = storage_address(part) == storage
        return same_place(part, copy) if there else part

    return rebuilt(tensor, place)
