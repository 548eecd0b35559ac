"""The tape: every tensor operation of one pass that depends on the noise.

A tape is a straight line of operations on numbered values. A value is a *constant*
(computed without noise, so the same in every draw), a *noise* (drawn at a site) or
the *result* of an operation on the tape. Running the line again with other noise is
another draw of the model, without any of its Python code.

Values that share memory belong to the same *group*: only there can a write to one
value be seen through another.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor


class Source(Protocol):
    """Where the values of a noise come from."""

    @property
    def numel(self) -> int:
        """Numbers per draw, to choose how many draws are made at a time."""

    def sample(self, seed: int, draws: range) -> Tensor:
        """Values of shape (draws, ...)."""

    def stream(self, seed: int) -> Callable[[range], Tensor]:
        """:meth:`sample` under a seed, for draws that follow each other."""


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
    is that of the module that was running.
    """

    func: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    results: tuple[int | None, ...]
    unpack: bool = False
    writes: tuple[int, ...] = ()
    path: str = ""

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


@dataclass
class Tape:
    """Values, constants, noises and operations, in the order of the pass."""

    values: list[Value] = field(default_factory=list)
    constants: dict[int, Tensor] = field(default_factory=dict)
    noises: dict[int, Source] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)
    outputs: list[Any] = field(default_factory=list)  # Ref, constant Tensor, or other

    def new_value(self, tensor: Tensor, group: int) -> int:
        """Number a new value that looks like ``tensor``."""
        self.values.append(Value(tuple(tensor.shape), tensor.dtype, group))
        return len(self.values) - 1

    def add_constant(self, tensor: Tensor, group: int) -> int:
        """Number a tensor that is the same in every draw."""
        number = self.new_value(tensor, group)
        self.constants[number] = tensor
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
        )

    def drop_dead(self) -> None:
        """Remove operations whose results and writes reach no output."""
        live = {self.values[r.number].group for r in self.outputs if isinstance(r, Ref)}
        kept: list[Op] = []
        for op in reversed(self.ops):
            made = {
                self.values[n].group for n in (*op.results, *op.writes) if n is not None
            }
            if live & made:
                live |= {self.values[n].group for n in op.reads()}
                kept.append(op)
        self.ops = kept[::-1]
        used = {n for op in self.ops for n in op.reads()}
        used |= {r.number for r in self.outputs if isinstance(r, Ref)}
        self.constants = {n: c for n, c in self.constants.items() if n in used}
        self.noises = {n: s for n, s in self.noises.items() if n in used}


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
