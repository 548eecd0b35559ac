"""One pass of a model with its noise made explicit, and what hangs on that noise.

The recorder is a dispatch mode that runs *below autograd*: there every call of the
model arrives as an ATen operation, and composite operations arrive whole. So a
dropout is seen as ``aten.dropout(x, p, train)`` even in evaluation mode, a linear
layer is one operation, and the LSTM still carries its rate. Three things happen here:

1. random operations are handed to the rules of ``caveat.sampling.rules``, which
   draw their noise by address;
2. operations that depend on tensors from before the pass, or on noise, go onto a tape;
   each is marked whether noise has a hand in it, for all others are done only once;
3. no write reaches a tensor that existed before the pass.

What a tensor depends on is tracked by *storage*, never by tensor: a view of a
noisy tensor is noisy however it was made. Four rules cover writes (in place, through
views, ``out=``, item assignment):

- noise written into a clean storage: each draw starts from a copy of it;
- a clean write into a storage that a noisy operation has read: that operation gets a
  snapshot;
- any write into an outside storage (input, parameter, buffer) goes to a private copy;
- a write is alive as long as its storage is (``Tape.drop_dead``).

A value that reaches Python may decide what the model does next. A clean one becomes a
*check* on the tape: it holds for all inputs that give the same value. So does a drawn
one, if it is a whole number or a truth value; any other ends the recording.
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
    HigherOrderOperator,
    OpOverload,
    storage_address,
    takes_apart,
    without_function_modes,
)
from caveat.errors import UnsupportedModelError
from caveat.sampling.checks import Same, SameShape, SameValues
from caveat.sampling.dispatch import (
    OpInfo,
    is_tensors,
    op_info,
    same_place,
    storage_copy,
    tensors_in,
    weak_storage,
    whole_storage,
)
from caveat.sampling.higher_order import run_higher_order, run_unknown
from caveat.sampling.noise import NoiseSpec
from caveat.sampling.raw import RawNumbers
from caveat.sampling.sparse import draws_its_pattern, is_sparse, parts, rebuilt
from caveat.sampling.tape import Op, Ref, Tape, map_refs

_aten = torch.ops.aten

_READING = frozenset(("tolist", "__repr__", "__deepcopy__"))  # values, not memory
_SPARSE_WRITE = """The model changes a sparse tensor in place ({func}) that it did not
make in this pass. Write it without the underscore: a = a * 2 in place of a.mul_(2)."""


class Recorder(DispatchMode):
    """Runs a pass; with ``record=True`` also writes its tape.

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
    raw : RawNumbers
        Numbers that are still as they were drawn.
    """

    def __init__(self, rule_for: Callable[[OpOverload], Any], *, record: bool) -> None:
        super().__init__()
        self.tape = Tape()
        self.sources: dict[int, Tensor] = {}
        self.kept: dict[int, Tensor] = {}
        self.escape: str | None = None
        self.bound: str | None = None
        self.where = ""
        self.raw = RawNumbers()
        self._rule_for = rule_for
        self._active = self._drawing = False
        self._was_active: list[bool] = []
        self._groups = 0
        self._sweep_beyond = 2  # storages; then those that are gone are forgotten
        self._record = record
        self._fresh: dict[int, StorageWeakRef] = {}  # storages made in this pass
        self._tracked: dict[int, _Tracked] = {}
        self._noisy = 0  # how many storages are
        self._private: dict[int, _PrivateCopy] = {}  # copies of outside storages
        self._numbers = WeakTensorKeyDictionary()  # tracked tensor -> its value
        self._constants: dict[int, int] = {}  # id of a constant -> its value
        self._read_on: dict[int, list[int]] = {}  # storage -> constants, kept values

    # ------------------------------------------------------------ for the rules

    def noise(self, spec: NoiseSpec, seed: int, draw: int) -> Tensor:
        """Draw ``spec`` and put it on the tape as a noise."""
        self._drawing = True  # how noise is made is not a part of the model
        try:
            tensor = spec.sample(seed, range(draw, draw + 1))[0]
        finally:
            self._drawing = False
        self._fresh[storage_address(tensor)] = weak_storage(tensor)
        if self._record:
            self.tape.noises[self._number_result(tensor, noisy=True)] = spec
        return tensor

    def run(self, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
        """Run one operation, and record it if it depends on anything."""
        if self._private:
            args = self._without_outside(args)
            kwargs = dict(
                zip(kwargs, self._without_outside(kwargs.values()), strict=True)
            )
        if len(self._fresh) + len(self._tracked) > self._sweep_beyond:
            self._forget_dead()
        info = op_info(func)
        if info.written:
            return self._run_write(func, info, args, kwargs)
        result = (
            func(*args, **kwargs) if info.known else run_unknown(func, args, kwargs)
        )
        inputs = {storage_address(t) for t in tensors_in((*args, *kwargs.values()))}
        self._note_fresh(result, inputs)
        self.raw.read(inputs, result)
        if self._record and self._matters(inputs):
            self._write_down(func, args, kwargs, result, inputs)
        return result

    def run_clean(self, func: OpOverload, *args: Any) -> Any:
        """Run one operation whose result is the same whatever is drawn."""
        args = self._without_outside(args)
        for tensor in tensors_in(args):
            if not self.is_noisy(tensor):
                self.pin(tensor)
        result = func(*args)
        self._note_fresh(result, {storage_address(t) for t in tensors_in(args)})
        return result

    def finish(self, outputs: list[Any]) -> Tape:
        """The tape, ending in ``outputs``; nothing may be recorded afterwards.

        Noisy operations may read snapshots that come later: what is dead can be told
        of its two parts only (``templates.py``).
        """
        self.tape.outputs = [self._output(out) for out in outputs]
        return self.tape

    @property
    def has_noise(self) -> bool:
        """Whether any value that is still there depends on noise."""
        return bool(self._noisy)

    def is_noisy(self, tensor: Any) -> bool:
        """Whether the value of ``tensor`` depends on noise."""
        if not self._noisy or not isinstance(tensor, Tensor):
            return False
        return self._is_noisy(storage_address(tensor))

    def ran_unseen(self, name: str, result: Any) -> None:
        """Note an operation whose inside was not seen, and what it returned."""
        if self.has_noise:
            self.escape = f"what {name} does with drawn values is not seen"
        self.bound = f"what {name} reads is not seen"
        self._note_fresh(result, set())

    def pin(self, tensor: Tensor) -> Tensor:
        """Note that the values of ``tensor`` decide what a rule does."""
        if self._record and self._matters({storage_address(tensor)}):
            self._check_values(tensor)
        return tensor

    def way_out(self, name: str, tensor: Any) -> None:
        """Note that Python gets hold of all values of a tensor, or of its memory."""
        self.raw.leave(tensor)
        if not self._record or not isinstance(tensor, Tensor):
            return
        if self.is_noisy(tensor):
            self.escape = f"{name} took a drawn value out of torch"
        elif name in _READING:
            self.pin(tensor)
        elif self._matters({storage_address(tensor)}):
            self.bound = f"{name} took a value out of torch"

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` existed before the pass."""
        return storage_address(tensor) not in self._fresh

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
        if self._drawing:
            return func(*args, **(kwargs or {}))
        if any(map(takes_apart, types)):
            return NotImplemented  # what the subclass makes of it comes back to us
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

    def _dispatch(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if isinstance(func, HigherOrderOperator):
            return run_higher_order(self, func, args, kwargs)
        rule = self._rule_for(func)
        if rule is not None:
            return rule(func, *args, **kwargs)
        if op_info(func).take_apart:
            for place in op_info(func).read_unseen:
                if isinstance(args[place], Tensor):
                    self.pin(args[place])
            with self:
                return func.decompose(*args, **kwargs)
        return self.run(func, *args, **kwargs)

    # ------------------------------------------------------------ what matters

    def _matters(self, storages: set[int]) -> bool:
        """Whether any of these is tracked, or from before the pass."""
        return any(s in self._tracked or s not in self._fresh for s in storages)

    def _is_noisy(self, storage: int) -> bool:
        tracked = self._tracked.get(storage)
        return tracked is not None and tracked.noisy

    def _any_noisy(self, storages: set[int]) -> bool:
        return bool(self._noisy) and any(map(self._is_noisy, storages))

    # ------------------------------------------------------------ reading

    def _write_down(
        self, func: OpOverload, args: Any, kwargs: Any, result: Any, inputs: set[int]
    ) -> None:
        noisy = self._any_noisy(inputs)
        if self._escapes(func, args, kwargs, result, noisy):
            return
        unpack = not isinstance(result, Tensor)
        results = list(_results(result))
        if noisy and (sources := op_info(func).sources):
            self._write_down_clean(func, args, kwargs, results, sources, unpack)
        wanted = [self._depends(t, inputs, noisy) for t in results]
        if not any(wanted):
            return
        # Arguments first: an operation may return its argument, which then gets a new
        # number.
        refs = self._refs(args, noisy=noisy)
        keyword_refs = self._keyword_refs(kwargs, noisy=noisy)
        numbers = tuple(
            self._number_result(t, noisy=noisy) if own else None
            for t, own in zip(results, wanted, strict=True)
        )
        self._append(Op(func, refs, keyword_refs, numbers, unpack, noisy=noisy))
        if op_info(func).dynamic_shape and not noisy:
            self._check_shapes(results, numbers)

    def _write_down_clean(
        self,
        func: OpOverload,
        args: Any,
        kwargs: Any,
        results: list[Tensor | None],
        sources: dict[int, tuple[int, ...]],
        unpack: bool,
    ) -> None:
        """Results of an operation with noisy arguments that no noise can change.

        They are taken off ``results``, and made by the operation on other numbers.
        """
        numbers: list[int | None] = [None] * len(results)
        used = False
        for i, tensor in enumerate(results):
            places = sources.get(i)
            if tensor is None or self._has_noisy_source(places, args):
                continue
            results[i] = None
            if places:  # else it is made of nothing
                used = True
                numbers[i] = self._number_result(tensor, noisy=False)
        if used:
            plain = self._without_noise(args)
            refs = self._refs(plain, noisy=False)
            clean = Op(func, refs, kwargs, tuple(numbers), unpack, noisy=False)
            self._append(clean)

    def _without_noise(self, arguments: Any) -> Any:
        """``arguments`` with other numbers in place of noisy ones."""
        if isinstance(arguments, Tensor) and self.is_noisy(arguments):
            like = torch.zeros_like(arguments)
            self._fresh[storage_address(like)] = weak_storage(like)
            return like
        if isinstance(arguments, list | tuple):
            return type(arguments)(map(self._without_noise, arguments))
        return arguments

    def _depends(self, tensor: Tensor | None, inputs: set[int], noisy: bool) -> bool:
        """False for a view of a clean input: ``clean.expand_as(noisy)`` is clean."""
        if tensor is None or not tensor.numel() or is_sparse(tensor):
            return tensor is not None
        storage = storage_address(tensor)
        return not noisy or self._is_noisy(storage) or storage not in inputs

    def _has_noisy_source(self, places: tuple[int, ...] | None, args: Any) -> bool:
        """Whether the arguments that a result depends on are noisy; None means all."""
        if places is None:
            return True
        return any(self.is_noisy(args[place]) for place in places if place < len(args))

    def _escapes(
        self, func: OpOverload, args: Any, kwargs: Any, result: Any, noisy: bool
    ) -> bool:
        info = op_info(func)
        if not is_tensors(result):
            if not info.metadata:
                self._check_number(func, args, kwargs, result, noisy)
            return True
        if noisy and info.dynamic_shape and self._decides_shape(func, args):
            self.escape = self.escape or f"a drawn value decides the shape of {func}"
        elif noisy and any(t is not None and t.is_nested for t in _results(result)):
            self.escape = self.escape or f"{func} made a nested tensor of drawn values"
        elif noisy and draws_its_pattern(func, args, self.is_noisy):
            self.escape = self.escape or f"drawn values decide the pattern of {func}"
        return self.escape is not None

    def _check_number(
        self, func: OpOverload, args: Any, kwargs: Any, result: Any, noisy: bool
    ) -> None:
        if noisy and not isinstance(result, bool | int):
            self.escape = self.escape or f"{func} handed a drawn value to Python"
            return
        refs = self._refs(args, noisy=noisy)
        keyword_refs = self._keyword_refs(kwargs, noisy=noisy)
        self._append(Op(Same(func, result), refs, keyword_refs, (), True, noisy=noisy))

    def _check_shapes(self, results: Any, numbers: tuple[int | None, ...]) -> None:
        for tensor, number in zip(results, numbers, strict=True):
            if number is not None:
                check = SameShape(tuple(tensor.shape))
                self._append(Op(check, (Ref(number),), {}, (), True, noisy=False))

    def _check_values(self, tensor: Tensor) -> None:
        """Put a check of all values onto the tape; drawn ones end the recording."""
        if self.is_noisy(tensor):
            self.escape = self.escape or "drawn values decide what a rule does"
            return
        if is_sparse(tensor):
            self.bound = "values of a sparse tensor decide what is done"
            return
        args = (self._ref(tensor, noisy=False),)
        check = SameValues(tensor.detach().clone())
        self._append(Op(check, args, {}, (), True, noisy=False))

    def _decides_shape(self, func: OpOverload, args: Any) -> bool:
        if func is not _aten.index.Tensor:
            return True
        masks = (
            t for t in args[1] if t is not None and t.dtype in (torch.bool, torch.uint8)
        )
        return any(self.is_noisy(mask) for mask in masks)

    def _append(self, op: Op) -> None:
        op.path = self.where
        self.tape.ops.append(op)

    def _number_result(self, tensor: Tensor, *, noisy: bool) -> int:
        storage = storage_address(tensor)
        if storage not in self._tracked:
            group = self._new_group()
            number = self.tape.new_value(tensor, group)
            self._track(tensor, number, group, noisy=noisy)
        else:
            number = self.tape.new_value(tensor, self._tracked[storage].group)
        self._numbers[tensor] = number
        return number

    def _track(self, tensor: Tensor, base: int, group: int, *, noisy: bool) -> None:
        storage = storage_address(tensor)
        self._tracked[storage] = _Tracked(weak_storage(tensor), base, group, noisy)
        self._noisy += noisy

    def _new_group(self) -> int:
        self._groups += 1
        return self._groups

    def _refs(self, args: Any, *, noisy: bool) -> tuple[Any, ...]:
        return tuple(self._ref(argument, noisy=noisy) for argument in args)

    def _keyword_refs(self, kwargs: dict[str, Any], *, noisy: bool) -> dict[str, Any]:
        return {name: self._ref(value, noisy=noisy) for name, value in kwargs.items()}

    def _ref(self, argument: Any, *, noisy: bool) -> Any:
        """``argument`` with refs for its tensors, as a (noisy) operation reads it."""
        if isinstance(argument, Tensor):
            return Ref(self._number(argument, noisy=noisy))
        if isinstance(argument, list | tuple):
            return type(argument)(self._ref(item, noisy=noisy) for item in argument)
        return argument

    def _number(self, tensor: Tensor, *, noisy: bool) -> int:
        if is_sparse(tensor):
            self.bound = "patterns of sparse tensors are not compared"
        storage = storage_address(tensor)
        tracked = self._tracked.get(storage)
        if tracked is None and storage in self._fresh:
            return self._constant(tensor)
        if tracked is None:
            tracked = self._source(tensor)
        number = self._tracked_number(tensor, tracked)
        if noisy and not tracked.noisy and number not in self.kept:
            self.kept[number] = tensor.detach() if tensor.requires_grad else tensor
            for part in parts(tensor):
                self._read_on.setdefault(storage_address(part), []).append(number)
        return number

    def _output(self, out: Any) -> Any:
        """An output as a ref, or as it is if nothing can change it."""
        if not isinstance(out, Tensor) or not self._matters({storage_address(out)}):
            return out
        return Ref(self._number(out, noisy=True))

    def _source(self, tensor: Tensor) -> "_Tracked":
        """A tensor from before the pass, met for the first time."""
        group = self._new_group()
        number = self.tape.new_value(tensor, group)
        self.sources[number] = tensor
        self._numbers[tensor] = number
        self._track(tensor, number, group, noisy=False)
        return self._tracked[storage_address(tensor)]

    def _tracked_number(self, tensor: Tensor, tracked: "_Tracked") -> int:
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
        self._append(Op(op, args, {}, (number,), noisy=tracked.noisy))
        return number

    def _constant(self, tensor: Tensor) -> int:
        number = self._constants.get(id(tensor))
        if number is None:
            number = self.tape.add_constant(tensor, group=-1)
            self._constants[id(tensor)] = number  # the tape keeps it, so the id stays
            for part in parts(tensor):
                self._read_on.setdefault(storage_address(part), []).append(number)
        return number

    # ------------------------------------------------------------ writing

    def _run_write(self, func: OpOverload, info: OpInfo, args: Any, kwargs: Any) -> Any:
        returned = {}
        for name in info.written:
            target = args[name] if isinstance(name, int) else kwargs.get(name)
            if isinstance(target, Tensor) and is_sparse(target):
                return self._write_to_sparse(func, target, args, kwargs)
            if isinstance(target, Tensor) and self.is_outside(target):
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
        self.raw.written(tensors_in(targets), (*args, *kwargs.values()))
        if self._record:
            self._prepare_write(list(tensors_in(targets)), (*args, *kwargs.values()))
        result = (
            func(*args, **kwargs) if info.known else run_unknown(func, args, kwargs)
        )
        if self._record:
            self._write_down_write(
                func, args, kwargs, result, list(tensors_in(targets))
            )
        return returned.get(id(result), result)

    def _write_to_sparse(
        self, func: OpOverload, target: Tensor, args: Any, kwargs: Any
    ) -> Any:
        """Such a write may put new values and indices in the place of the old."""
        if any(storage_address(part) not in self._fresh for part in parts(target)):
            raise UnsupportedModelError(_SPARSE_WRITE.format(func=func))
        if any(map(self.is_noisy, tensors_in((*args, *kwargs.values())))):
            self.escape = f"{func} changed a sparse tensor that depends on noise"
        elif any(storage_address(part) in self._read_on for part in parts(target)):
            self.escape = f"{func} changed a sparse tensor after noise had met it"
        self.bound = f"{func} changed a sparse tensor"
        result = func(*args, **kwargs)
        self._note_fresh(result, set())
        return result

    def _prepare_write(self, targets: list[Tensor], arguments: Any) -> None:
        storages = {storage_address(t) for t in tensors_in(arguments)}
        noisy, matters = self._any_noisy(storages), self._matters(storages)
        for target in targets:
            storage = storage_address(target)
            if self._is_noisy(storage):
                continue
            tracked = self._tracked.get(storage)
            becomes = noisy if tracked is not None else matters
            if not becomes and storage not in self._read_on:
                continue
            pristine = storage_copy(target)
            if tracked is None:
                self._repoint_constants(storage, pristine)
                if matters:
                    source = Ref(self._constant(pristine))
                    self._start_from(source, pristine, target, noisy=noisy)
            elif noisy:
                self._turn_noisy(tracked, pristine, target)
            else:
                self._snapshot(tracked, pristine, storage)

    def _repoint_constants(self, storage: int, pristine: Tensor) -> None:
        """Constants on a storage about to be written move to its pristine copy."""
        for number in self._read_on.pop(storage, ()):
            old = self.tape.constants[number]
            self._constants.pop(id(old), None)  # parts of a sparse one move in turn
            self.tape.constants[number] = rebuilt(
                old, lambda part: _moved(part, storage, pristine)
            )

    def _turn_noisy(
        self, tracked: "_Tracked", pristine: Tensor, target: Tensor
    ) -> None:
        """Noise is about to be written where there was none."""
        storage = storage_address(target)
        for number in self._read_on.pop(storage, ()):
            self.kept[number] = rebuilt(
                self.kept[number], lambda part: _moved(part, storage, pristine)
            )
        whole = self.tape.new_value(pristine, tracked.group)
        op = Op(whole_storage, (Ref(tracked.base),), {}, (whole,), noisy=False)
        self._append(op)
        self.kept[whole] = pristine
        self._start_from(Ref(whole), pristine, target, noisy=True)

    def _start_from(
        self, source: Ref, pristine: Tensor, target: Tensor, *, noisy: bool
    ) -> None:
        """The storage of ``target`` starts anew, as a copy of ``source``."""
        group = self._new_group()
        base = self.tape.new_value(pristine, group)
        self._append(Op(_aten.clone.default, (source,), {}, (base,), noisy=noisy))
        self._track(target, base, group, noisy=noisy)

    def _snapshot(self, tracked: "_Tracked", pristine: Tensor, storage: int) -> None:
        """Noisy operations so far shall see what is about to be written over."""
        copy = self.tape.new_value(pristine, self._new_group())
        whole = Op(storage_copy, (Ref(tracked.base),), {}, (copy,), noisy=False)
        self._append(whole)
        renamed: dict[int, Ref] = {}
        for number in self._read_on.pop(storage, ()):
            if is_sparse(self.kept[number]):
                self.escape = "a sparse tensor was written after noise had met it"
                continue
            old = self.kept.pop(number)
            seen = same_place(old, pristine)
            new = self.tape.new_value(seen, self.tape.values[copy].group)
            where = (tuple(seen.shape), seen.stride(), seen.storage_offset())
            view, args = _aten.as_strided.default, (Ref(copy), *where)
            self._append(Op(view, args, {}, (new,), noisy=False))
            self.kept[new] = seen
            renamed[number] = Ref(new)
        for op in self.tape.ops:
            if op.noisy:
                rename(op, renamed)

    def _write_down_write(
        self,
        func: OpOverload,
        args: Any,
        kwargs: Any,
        result: Any,
        targets: list[Tensor],
    ) -> None:
        storages = {storage_address(t) for t in tensors_in((*args, *kwargs.values()))}
        if not any(storage_address(t) in self._tracked for t in targets):
            self._note_fresh(result, storages)
            return
        noisy = self._any_noisy(storages)
        refs = self._refs(args, noisy=noisy)
        keyword_refs = self._keyword_refs(kwargs, noisy=noisy)
        written = tuple(self._number(t, noisy=noisy) for t in targets)
        unpack = not isinstance(result, Tensor)
        results = _results(result)
        ids = set(map(id, targets))
        numbers = tuple(
            None if t is None or id(t) in ids else self._number_result(t, noisy=noisy)
            for t in results
        )
        self._append(
            Op(func, refs, keyword_refs, numbers, unpack, written, noisy=noisy)
        )

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
        for storage in [k for k, t in self._tracked.items() if t.storage.expired()]:
            self._noisy -= self._tracked.pop(storage).noisy
        alive = len(self._fresh) + len(self._tracked)
        self._sweep_beyond = alive + max(4, alive // 8)

    def _privatise(self, tensor: Tensor) -> Tensor:
        storage = storage_address(tensor)
        if storage not in self._private:
            copy = storage_copy(tensor)
            self._private[storage] = _PrivateCopy(tensor, copy)
            self._fresh[storage_address(copy)] = weak_storage(copy)
            if self._record:
                source = self._ref(tensor, noisy=False)
                base = self._number_result(copy, noisy=False)
                op = Op(storage_copy, (source,), {}, (base,), noisy=False)
                self._append(op)
        return same_place(tensor, self._private[storage].copy)

    def _without_outside(self, arguments: Any) -> tuple[Any, ...]:
        """``arguments``, with our copies for outside tensors that were written."""
        return tuple(map(self._replace_outside, arguments))

    def _replace_outside(self, argument: Any) -> Any:
        if isinstance(argument, Tensor):
            if not any(storage_address(p) in self._private for p in parts(argument)):
                return argument
            return rebuilt(argument, self._replace_part)
        if isinstance(argument, list | tuple):
            return type(argument)(map(self._replace_outside, argument))
        return argument

    def _replace_part(self, part: Tensor) -> Tensor:
        held = self._private.get(storage_address(part))
        return part if held is None else same_place(part, held.copy)


def _results(result: Any) -> tuple[Any, ...]:
    """What an operation returned: several, one, or nothing."""
    if isinstance(result, list | tuple):
        return tuple(result)
    return () if result is None else (result,)


def _moved(part: Tensor, storage: int, copy: Tensor) -> Tensor:
    return same_place(part, copy) if storage_address(part) == storage else part


def rename(op: Op, names: dict[int, Ref]) -> None:
    """Let ``op`` read other values."""

    def new(number: int) -> Ref:
        return names.get(number, Ref(number))

    op.args = map_refs(new, op.args)
    op.kwargs = {k: map_refs(new, v) for k, v in op.kwargs.items()}


@dataclass(frozen=True, slots=True)
class _Tracked:
    storage: StorageWeakRef  # keeps the address from being used again
    base: int  # a value on this storage, from which unknown views are made
    group: int
    noisy: bool


@dataclass(frozen=True, slots=True)
class _PrivateCopy:
    outside: Tensor
    copy: Tensor
