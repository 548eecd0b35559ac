"""One pass of a model with its noise made explicit, and what hangs on that noise.

The recorder is a dispatch mode that runs *below autograd*: there every call of the
model arrives as an ATen operation, and composite operations arrive whole. So a
dropout is seen as ``aten.dropout(x, p, train)`` even in evaluation mode, a linear
layer is one operation, and the LSTM still carries its rate. What it does with them:

- random operations are handed to the rules of ``caveat.sampling.rules``, which
  draw their noise by address;
- operations that depend on tensors from before the pass, or on noise, go onto a tape
  (``operations.py``, ``overwriting.py``); each is marked whether noise has a hand in
  it, for all others are done only once;
- a write to a tensor from before the pass goes to a copy (``private.py``).
"""

from collections.abc import Callable
from typing import Any, Self

from torch import Tensor

from caveat._torch import (
    DispatchMode,
    HigherOrderOperator,
    OpOverload,
    storage_address,
    takes_apart,
    without_function_modes,
)
from caveat.sampling.dispatch import OpInfo, op_info, storage_copy, tensors_in
from caveat.sampling.higher_order import run_higher_order, run_unknown
from caveat.sampling.noise import NoiseSpec
from caveat.sampling.operations import write_down
from caveat.sampling.overwriting import (
    note_sparse_write,
    prepare_write,
    write_down_write,
)
from caveat.sampling.private import PrivateCopies
from caveat.sampling.ragged import Ragged
from caveat.sampling.raw import RawNumbers
from caveat.sampling.sparse import is_sparse
from caveat.sampling.storages import Storages
from caveat.sampling.tape import Op, Tape
from caveat.sampling.transcript import Transcript

_READING = frozenset(("tolist", "__repr__", "__deepcopy__"))  # values, not memory


class Recorder(DispatchMode):
    """Runs a pass; with ``record=True`` also writes its tape.

    Attributes
    ----------
    transcript : Transcript
        The tape so far, and for what it is good.
    raw : RawNumbers
        Numbers that are still as they were drawn.
    ragged : Ragged or None
        Tensors whose number of entries values decide, in looks.
    """

    def __init__(
        self,
        rule_for: Callable[[OpOverload], Any],
        *,
        record: bool,
        ragged: Ragged | None = None,
    ) -> None:
        super().__init__()
        self.raw = RawNumbers()
        self.ragged = ragged
        self._storages = Storages()
        self.transcript = Transcript(self._storages)
        self._private = PrivateCopies()
        self._rule_for = rule_for
        self._record = record
        self._active = self._drawing = False
        self._was_active: list[bool] = []

    # ------------------------------------------------------------ for the rules

    def noise(self, spec: NoiseSpec, seed: int, draw: int) -> Tensor:
        """Draw ``spec`` and put it on the tape as a noise."""
        self._drawing = True  # how noise is made is not a part of the model
        try:
            tensor = spec.sample(seed, range(draw, draw + 1))[0]
        finally:
            self._drawing = False
        self._storages.add(tensor)
        if self._record:
            self.transcript.add_noise(tensor, spec)
        return tensor

    def run(self, func: OpOverload, *args: Any, **kwargs: Any) -> Any:
        """Run one operation, and record it if it depends on anything."""
        if self._private:
            args = self._private.instead(args)
            kwargs = dict(
                zip(kwargs, self._private.instead(kwargs.values()), strict=True)
            )
        self._storages.sweep()
        info = op_info(func)
        if info.written:
            return self._run_write(func, info, args, kwargs)
        result = _result(func, info, args, kwargs)
        inputs = {storage_address(t) for t in tensors_in((*args, *kwargs.values()))}
        self._storages.add_result(result, inputs)
        self.raw.read(inputs, result)
        if self.ragged is not None:
            self.ragged.note(func, args, result)
        if self._record and self._storages.matter(inputs):
            write_down(self.transcript, func, args, kwargs, result, inputs)
        return result

    def run_clean(self, func: OpOverload, *args: Any) -> Any:
        """Run one operation whose result is the same whatever is drawn."""
        args = self._private.instead(args)
        for tensor in tensors_in(args):
            if not self.is_noisy(tensor):
                self.pin(tensor)
        result = func(*args)
        inputs = {storage_address(t) for t in tensors_in(args)}
        self._storages.add_result(result, inputs)
        return result

    def finish(self, outputs: list[Any]) -> Tape:
        """The tape, ending in ``outputs``; nothing may be recorded afterwards.

        Noisy operations may read snapshots that come later: what is dead can be told
        of its two parts only (``templates.py``).
        """
        tape = self.transcript.tape
        tape.outputs = [self.transcript.output(out) for out in outputs]
        return tape

    def is_noisy(self, tensor: Any) -> bool:
        """Whether the value of ``tensor`` depends on noise."""
        return self._storages.is_noisy(tensor)

    def ran_unseen(self, name: str, result: Any) -> None:
        """Note an operation whose inside was not seen, and what it returned."""
        if self._storages.has_noise:
            how = f"what {name} does with drawn values is not seen"
            self.transcript.escape = how
        self.transcript.bound = f"what {name} reads is not seen"
        self._storages.add_result(result, set())

    def pin(self, tensor: Tensor) -> Tensor:
        """Note that the values of ``tensor`` decide what a rule does."""
        if self._record and self._storages.matter({storage_address(tensor)}):
            self.transcript.check_values(tensor)
        return tensor

    def way_out(self, name: str, tensor: Any) -> None:
        """Note that Python gets hold of all values of a tensor, or of its memory."""
        self.raw.leave(tensor)
        if self.ragged is not None:
            self.ragged.read(tensor)
        if not self._record or not isinstance(tensor, Tensor):
            return
        if self.is_noisy(tensor):
            self.transcript.escape = f"{name} took a drawn value out of torch"
        elif name in _READING:
            self.pin(tensor)
        elif self._storages.matter({storage_address(tensor)}):
            self.transcript.bound = f"{name} took a value out of torch"

    def is_outside(self, tensor: Tensor) -> bool:
        """Whether ``tensor`` existed before the pass."""
        return self._storages.is_outside(tensor)

    @property
    def has_redirected(self) -> bool:
        """Whether there was a write to a tensor from before the pass."""
        return bool(self._private)

    def as_written(self, tensor: Tensor) -> Tensor:
        """``tensor``, or our copy of it if it was written to."""
        written: Tensor = self._private.replace(tensor)
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
        places = [
            args[name] if isinstance(name, int) else kwargs.get(name)
            for name in info.written
        ]
        targets, arguments = list(tensors_in(places)), (*args, *kwargs.values())
        self.raw.written(targets, arguments)
        if self._record:
            prepare_write(self.transcript, targets, arguments)
        result = _result(func, info, args, kwargs)
        if self._record:
            write_down_write(self.transcript, func, args, kwargs, result, targets)
        return returned.get(id(result), result)

    def _write_to_sparse(
        self, func: OpOverload, target: Tensor, args: Any, kwargs: Any
    ) -> Any:
        arguments = (*args, *kwargs.values())
        note_sparse_write(self.transcript, func, target, arguments)
        result = func(*args, **kwargs)
        self._storages.add_result(result, set())
        return result

    def _privatise(self, tensor: Tensor) -> Tensor:
        """What is written in the place of an outside tensor."""
        if storage_address(tensor) not in self._private:
            copy = self._private.make(tensor)
            self._storages.add(copy)
            if self._record:
                source = self.transcript.ref(tensor, noisy=False)
                base = self.transcript.number_result(copy, noisy=False)
                op = Op(storage_copy, (source,), {}, (base,), noisy=False)
                self.transcript.append(op)
        return self._private.of(tensor)


def _result(func: OpOverload, info: OpInfo, args: Any, kwargs: Any) -> Any:
    return func(*args, **kwargs) if info.known else run_unknown(func, args, kwargs)
