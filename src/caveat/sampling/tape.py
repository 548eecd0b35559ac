"""The tape: every tensor operation of one pass that hangs on its inputs or its noise.

A tape is a straight line of operations on numbered values. A value is a *source* (a
tensor from before the pass: an input, a weight), a *constant* (made in the pass out of
nothing), a *noise* (drawn at a site) or the *result* of an operation on the tape.
Running the line again with other noise is another draw of the model, and with other
inputs another batch, without any of the model's Python code.

Values that share memory belong to the same *group*: only there can a write to one
value be seen through another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class NoiseSource(Protocol):
    """Where the values of a noise come from."""

    @property
    def numel(self) -> int:
        """Numbers per draw, to choose how many draws are made at a time."""

    @property
    def reads(self) -> tuple[int, ...]:
        """Constants of the tape that the values hang on."""

    def fixed(self, seed: int, draws: range) -> Tensor:
        """What is drawn, whatever the constants are, (draws, ...)."""

    def finished(self, drawn: Tensor, constants: dict[int, Tensor]) -> Tensor:
        """The values, (draws, ...), made of what is drawn."""

    def stream(self, seed: int) -> Callable[[range], Tensor]:
        """:meth:`fixed` under a seed, for draws that follow each other."""


class Ref(NamedTuple):
    """A value on the tape, by its number."""

    number: int


@dataclass(slots=True)
class Value:
    """What is known of a value before the tape runs."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    group: int


@dataclass(slots=True)
class Op:
    """One operation: ``results = func(*args, **kwargs)``, tensors given as refs.

    ``results`` has a number for each tensor that ``func`` returns, None where the
    result is not used (or is a tensor that was written in place). ``unpack`` says
    that ``func`` returns a sequence. ``writes`` are the values it writes to. ``path``
    is that of the module that was running. ``noisy`` says whether noise has a hand in
    it; an operation without ``results`` and ``writes`` only checks something.
    """

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[int | None, ...]
    unpack: bool = False
    writes: tuple[int, ...] = ()
    path: str = ""
    noisy: bool = True

    def reads(self) -> Iterator[int]:
        """Numbers of all values among the arguments."""
        yield from refs_in(self.args)
        yield from refs_in(tuple(self.kwargs.values()))

    @property
    def result(self) -> int:
        """The number of the only result."""
        (number,) = self.results
        assert number is not None
        return number

    @property
    def is_check(self) -> bool:
        """Whether it makes nothing, and only checks what it is given."""
        return not self.results and not self.writes


@dataclass
class Tape:
    """Values, constants, noises and operations, in the order of the pass.

    ``setup`` are operations that make some of the constants of others: what rewrites
    prepare, to be done again when a tape is used with other constants.
    """

    values: list[Value] = field(default_factory=list)
    constants: dict[int, Tensor] = field(default_factory=dict)
    noises: dict[int, NoiseSource] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)  # Ref, constant Tensor, or other
    setup: list[Op] = field(default_factory=list)

    def new_value(self, tensor: Tensor, group: int) -> int:
        """Number a new value that looks like ``tensor``."""
        self.values.append(Value(tuple(tensor.shape), tensor.dtype, group))
        return len(self.values) - 1

    def add_constant(self, tensor: Tensor, group: int) -> int:
        """Number a tensor that is the same in every draw."""
        number = self.new_value(tensor, group)
        self.constants[number] = tensor
        return number

    def derive(self, func: Callable[..., Tensor], *args: Any, **kwargs: Any) -> int:
        """A constant made of others, which are given as refs."""
        given = map_refs(self.constants.__getitem__, (args, tuple(kwargs.values())))
        tensor = func(*given[0], **dict(zip(kwargs, given[1], strict=True)))
        number = self.add_constant(tensor, group=-1)
        self.setup.append(Op(func, args, kwargs, (number,), noisy=False))
        return number

    def new_number(self, shape: tuple[int, ...], dtype: torch.dtype) -> int:
        """Number a new value in memory of its own."""
        group = 1 + max((value.group for value in self.values), default=0)
        self.values.append(Value(shape, dtype, group))
        return len(self.values) - 1

    def copy(self) -> "Tape":
        """A tape that can be changed without changing this one; tensors are shared."""
        return Tape(
            list(self.values),
            dict(self.constants),
            dict(self.noises),
            [replace(op) for op in self.ops],
            list(self.outputs),
            list(self.setup),
        )

    def drop_dead(self) -> None:
        """Remove operations whose results and writes reach no output and no check."""
        live = {self.values[r.number].group for r in self.outputs if isinstance(r, Ref)}
        kept: list[Op] = []
        for op in reversed(self.ops):
            made = {
                self.values[n].group for n in (*op.results, *op.writes) if n is not None
            }
            if live & made or op.is_check:
                live |= {self.values[n].group for n in op.reads()}
                kept.append(op)
        self.ops = kept[::-1]
        used = {n for op in self.ops for n in op.reads()}
        used |= {r.number for r in self.outputs if isinstance(r, Ref)}
        self.noises = {n: s for n, s in self.noises.items() if n in used}
        used |= {n for noise in self.noises.values() for n in noise.reads}
        setup: list[Op] = []
        for op in reversed(self.setup):
            if op.result in used:
                used |= set(op.reads())
                setup.append(op)
        self.setup = setup[::-1]
        self.constants = {n: c for n, c in self.constants.items() if n in used}


def refs_in(arguments: Any) -> Iterator[int]:
    """Numbers of the refs in an argument list, which may hold lists of tensors."""
    for argument in arguments:
        if isinstance(argument, Ref):
            yield argument.number
        elif isinstance(argument, list | tuple):
            yield from refs_in(argument)


def map_refs(function: Callable[[int], Any], argument: Any) -> Any:
    """``argument`` with each ref replaced by ``function(number)``."""
    if isinstance(argument, Ref):
        return function(argument.number)
    if isinstance(argument, list | tuple):
        return type(argument)(map_refs(function, item) for item in argument)
    return argument
