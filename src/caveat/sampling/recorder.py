"""One pass of a model with its noise made explicit, and what depends on that noise.

The recorder is a dispatch mode that runs *below autograd*: there every call of the
model arrives as an ATen operation, and composite operations arrive whole. So a
dropout is seen as ``aten.dropout(x, p, train)`` even in evaluation mode, a linear
layer is one operation, and the LSTM still carries its rate. Three things happen here:

1. random operations are handed to the rules of ``caveat.sampling.rules``, which
   draw their noise by address;
2. operations that depend on noise go onto a tape; all others are done once;
3. no write reaches a tensor that existed before the pass.

Which tensors depend on noise is tracked by *storage*, never by tensor: a view of a
noisy tensor is noisy however it was made. Four rules cover writes (in place, through
views, ``out=``, item assignment):

- noise written into a clean storage: keep a pristine copy; each draw starts from it;
- a clean write into a storage that the tape has read: keep a snapshot for the tape;
- any write into an outside storage (input, parameter, buffer) goes to a private copy;
- a write is alive as long as its storage is (``Tape.drop_dead``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils.weak import WeakTensorKeyDictionary

from caveat._torch import (
    DispatchMode,
    OpOverload,
    storage_address,
    without_function_modes,
)
from caveat.sampling.dispatch import (
    OpInfo,
    is_tensors,
    op_info,
    same_place,
    tensors_in,
    weak_storage,
    whole_storage,
)
from caveat.sampling.noise import NoiseSpec
from caveat.sampling.tape import Op, Ref, Tape

_aten = torch.ops.aten


class Recorder(DispatchMode):
    """Runs a pass; with ``record=True`` also writes the tape of its noisy part.

    Attributes
    ----------
    tape : Tape
        What depends on noise. Only of use when ``escape`` is None.
    escape : str or None
        How a noisy value reached Python (``item()``, a boolean index, …), after which
        another draw may take another path: then every draw runs the model.
    where : str
        Path of the module that is running, noted on the tape.
    """

    def __init__(self, rule_for: Callable[[OpOverload], Any], *, record: bool) -> None:
        super().__init__()
        self.tape = Tape()
        self.escape: str | None = None
        self.where = ""
        self._rule_for = rule_for
        self._active = False
        self._was_active: list[bool] = []
        self._groups = 0
        self._sweep_beyond = 2  # storages; then those that are gone are forgotten
        self._record = record
        self._fresh: dict[int, StorageWeakRef] = {}  # storages made in this pass
        self._noisy: dict[int, _NoisyStorage] = {}
        self._private: dict[int, _PrivateCopy] = {}  # copies of outside storages
        self._numbers = WeakTensorKeyDictionary()  # noisy tensor -> its value
        self._constants: dict[int, int] = {}  # id of a kept tensor -> its value
        self._constants_on: dict[int, list[int]] = {}  # storage -> constants on it

    # ------------------------------------------------------------ for the rules

    def noise(self, spec: NoiseSpec, seed: int, draw: int) -> Tensor:
        """Draw ``spec`` and put it on the tape as a noise."""
        tensor = spec.sample(seed, range(draw, draw + 1))[0]
        if self._record:
            self.tape.noises[self._number_result(tensor)] = spec
        return tensor

    def run(self, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
        """Run one operation, and record it if it depends on noise."""
        if self._private:
            args = self._without_outside(args)
            kwargs = dict(
                zip(kwargs, self._without_outside(kwargs.values()), strict=True)
            )
        if len(self._fresh) + len(self._noisy) > self._sweep_beyond:
            self._forget_dead()
        info = op_info(func)
        if info.written:
            return self._run_write(func, info, args, kwargs)
        result = func(*args, **kwargs)
        inputs = {storage_address(t) for t in tensors_in((*args, *kwargs.values()))}
        self._note_fresh(result, inputs)
        if self._noisy and not inputs.isdisjoint(self._noisy):
            self._write_down(func, args, kwargs, result, inputs)
        return result

    def finish(self, outputs: list[Any]) -> Tape:
        """The tape, ending in ``outputs``; nothing may be recorded afterwards."""
        self.tape.outputs = [
            self._ref(out) if self.is_noisy(out) else out for out in outputs
        ]
        self.tape.drop_dead()
        return self.tape

    def is_noisy(self, tensor: Any) -> bool:
        """Whether the value of ``tensor`` depends on noise."""
        return isinstance(tensor, Tensor) and storage_address(tensor) in self._noisy

    @property
    def has_redirected(self) -> bool:
        """Whether there was a write to a tensor from before the pass."""
        return bool(self._private)

    def as_written(self, tensor: Tensor) -> Tensor:
        """``tensor``, or our copy of it if it was written to."""
        written: Tensor = self._replace_outside(tensor)
        return written

    # ------------------------------------------------------------ dispatch

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # Scripted code arrives with the guard still in force; it is not meant for us.
        self._active = False
        try:
            with without_function_modes():
                return self._dispatch(func, args, kwargs or {})
        finally:
            self._active = True

    def __enter__(self) -> Self:
        """Enter the mode, unless it is in force already: rules may nest."""
        self._was_active.append(self._active)
        if not self._active:
            super().__enter__()  # type: ignore[no-untyped-call]
            self._active = True
        return self

    def __exit__(self, *exception: Any) -> None:
        """Leave the mode if this is the block that entered it."""
        if not self._was_active.pop():
            self._active = False
            super().__exit__(*exception)  # type: ignore[no-untyped-call]

    def _dispatch(self, func: OpOverload, args: Any, kwargs: dict[str, Any]) -> Any:
        rule = self._rule_for(func)
        if rule is not None:
            return rule(func, *args, **kwargs)
        if op_info(func).take_apart:
            with self:
                return func.decompose(*args, **kwargs)
        return self.run(func, *args, **kwargs)

    # ------------------------------------------------------------ reading

    def _write_down(
        self, func: OpOverload, args: Any, kwargs: Any, result: Any, inputs: set[int]
    ) -> None:
        if self._escapes(func, args, result):
            return
        unpack = not isinstance(result, Tensor)
        results = result if unpack else (result,)
        if not any(self._depends(t, inputs) for t in results):
            return
        # Arguments first: an operation may return its argument, which then gets a new
        # number.
        refs, keyword_refs = self._refs(args), self._keyword_refs(kwargs)
        numbers = tuple(
            self._number_result(t) if self._depends(t, inputs) else None
            for t in results
        )
        op = Op(func, refs, keyword_refs, numbers, unpack, path=self.where)
        self.tape.ops.append(op)

    def _depends(self, tensor: Tensor | None, inputs: set[int]) -> bool:
        """False for a view of a clean input: ``clean.expand_as(noisy)`` is clean."""
        if tensor is None or not tensor.numel():
            return tensor is not None
        storage = storage_address(tensor)
        return storage in self._noisy or storage not in inputs

    def _escapes(self, func: OpOverload, args: Any, result: Any) -> bool:
        info = op_info(func)
        if not is_tensors(result) and not info.metadata:
            self.escape = self.escape or f"{func} handed a drawn value to Python"
        elif info.dynamic_shape and self._decides_shape(func, args):
            self.escape = self.escape or f"a drawn value decides the shape of {func}"
        return self.escape is not None or not is_tensors(result)

    def _decides_shape(self, func: OpOverload, args: Any) -> bool:
        if func is not _aten.index.Tensor:
            return True
        masks = (
            t for t in args[1] if t is not None and t.dtype in (torch.bool, torch.uint8)
        )
        return any(self.is_noisy(mask) for mask in masks)

    def _number_result(self, tensor: Tensor) -> int:
        storage = storage_address(tensor)
        if storage not in self._noisy:
            group = self._new_group()
            number = self.tape.new_value(tensor, group)
            self._noisy[storage] = _NoisyStorage(weak_storage(tensor), number, group)
        else:
            number = self.tape.new_value(tensor, self._noisy[storage].group)
        self._numbers[tensor] = number
        return number

    def _new_group(self) -> int:
        self._groups += 1
        return self._groups

    def _refs(self, args: Any) -> tuple[Any, ...]:
        return tuple(map(self._ref, args))

    def _keyword_refs(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        return {name: self._ref(value) for name, value in kwargs.items()}

    def _ref(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            noisy = self._noisy.get(storage_address(argument))
            return Ref(
                self._constant(argument)
                if noisy is None
                else self._noisy_number(argument, noisy)
            )
        if isinstance(argument, list | tuple):
            return type(argument)(map(self._ref, argument))
        return argument

    def _noisy_number(self, tensor: Tensor, noisy: "_NoisyStorage") -> int:
        number: int | None = self._numbers.get(tensor)
        if number is None:  # a view made out of sight, or from before the first write
            number = self.tape.new_value(tensor, noisy.group)
            where = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
            args = (Ref(noisy.base), *where)
            self.tape.ops.append(Op(_aten.as_strided.default, args, {}, (number,)))
            self._numbers[tensor] = number
        return number

    def _constant(self, tensor: Tensor) -> int:
        number = self._constants.get(id(tensor))
        if number is None:
            number = self.tape.add_constant(tensor, group=-1)
            self._constants[id(tensor)] = number  # the tape keeps it, so the id stays
            self._constants_on.setdefault(storage_address(tensor), []).append(number)
        return number

    # ------------------------------------------------------------ writing

    def _run_write(self, func: OpOverload, info: OpInfo, args: Any, kwargs: Any) -> Any:
        returned = {}
        for name in info.written:
            target = args[name] if isinstance(name, int) else kwargs.get(name)
            if isinstance(target, Tensor) and self._is_outside(target):
                private = self._privatise(target)
                returned[id(private)] = target
                if isinstance(name, int):
                    args = (*args[:name], private, *args[name + 1 :])
                else:
                    kwargs = {**kwargs, name: private}
        targets = [
            args[name] if isinstance(name, int) else kwargs.get(name)
            for name in info.written
        ]
        if self._record:
            self._prepare_write(list(tensors_in(targets)), (*args, *kwargs.values()))
        result = func(*args, **kwargs)
        if self._record:
            self._write_down_write(
                func, args, kwargs, result, list(tensors_in(targets))
            )
        return returned.get(id(result), result)

    def _prepare_write(self, targets: list[Tensor], arguments: Any) -> None:
        noisy = any(map(self.is_noisy, tensors_in(arguments)))
        for target in targets:
            storage = storage_address(target)
            if storage in self._noisy:
                continue
            if noisy or storage in self._constants_on:
                pristine = whole_storage(target).clone()
                self._repoint_constants(storage, pristine)
                if noisy:
                    self._start_from(pristine, target)

    def _repoint_constants(self, storage: int, pristine: Tensor) -> None:
        """Constants on a storage about to be written move to its pristine copy."""
        for number in self._constants_on.pop(storage, ()):
            old = self.tape.constants[number]
            self._constants.pop(id(old))
            self.tape.constants[number] = same_place(old, pristine)

    def _start_from(self, pristine: Tensor, target: Tensor) -> None:
        """Make the storage of ``target`` noisy; each draw starts with a copy of it."""
        group = self._new_group()
        base = self.tape.new_value(pristine, group)
        source = Ref(self._constant(pristine))
        self.tape.ops.append(Op(_aten.clone.default, (source,), {}, (base,)))
        self._noisy[storage_address(target)] = _NoisyStorage(
            weak_storage(target), base, group
        )

    def _write_down_write(
        self,
        func: OpOverload,
        args: Any,
        kwargs: Any,
        result: Any,
        targets: list[Tensor],
    ) -> None:
        if not any(map(self.is_noisy, targets)):
            self._note_fresh(
                result,
                {storage_address(t) for t in tensors_in((*args, *kwargs.values()))},
            )
            return
        refs, keyword_refs = self._refs(args), self._keyword_refs(kwargs)
        written = tuple(self._ref(t).number for t in targets)
        unpack = not isinstance(result, Tensor)
        results = result if unpack else (result,)
        ids = set(map(id, targets))
        numbers = tuple(
            None if t is None or id(t) in ids else self._number_result(t)
            for t in results
        )
        op = Op(func, refs, keyword_refs, numbers, unpack, written, self.where)
        self.tape.ops.append(op)

    # ------------------------------------------------------------ outside storages

    def _note_fresh(self, result: Any, inputs: set[int]) -> None:
        for tensor in tensors_in((result,)):
            storage = storage_address(tensor)
            if storage not in inputs and storage not in self._fresh:
                self._fresh[storage] = weak_storage(tensor)

    def _forget_dead(self) -> None:
        """Let go of storages that are gone: even their headers break up the heap."""
        for storage in [k for k, weak in self._fresh.items() if weak.expired()]:
            del self._fresh[storage]
        for storage in [k for k, n in self._noisy.items() if n.storage.expired()]:
            del self._noisy[storage]
        alive = len(self._fresh) + len(self._noisy)
        self._sweep_beyond = alive + max(4, alive // 8)

    def _is_outside(self, tensor: Tensor) -> bool:
        storage = storage_address(tensor)
        return storage not in self._fresh and storage not in self._noisy

    def _privatise(self, tensor: Tensor) -> Tensor:
        storage = storage_address(tensor)
        if storage not in self._private:
            copy = whole_storage(tensor).clone()
            self._private[storage] = _PrivateCopy(tensor, copy)
            self._fresh[storage_address(copy)] = weak_storage(copy)
        return same_place(tensor, self._private[storage].copy)

    def _without_outside(self, arguments: Any) -> tuple[Any, ...]:
        """``arguments``, with our copies for outside tensors that were written."""
        return tuple(map(self._replace_outside, arguments))

    def _replace_outside(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            held = self._private.get(storage_address(argument))
            return argument if held is None else same_place(argument, held.copy)
        if isinstance(argument, list | tuple):
            return type(argument)(map(self._replace_outside, argument))
        return argument


@dataclass(frozen=True, slots=True)
class _NoisyStorage:
    storage: StorageWeakRef  # keeps the address from being used again
    base: int  # a value on this storage, from which unknown views are made
    group: int


@dataclass(frozen=True, slots=True)
class _PrivateCopy:
    outside: Tensor
    copy: Tensor
