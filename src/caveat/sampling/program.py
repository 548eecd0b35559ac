"""A tape as a Python function: one line an operation, nothing else.

Replaying a draw calls this function with that draw's noise. No module code runs, and
each value is let go after its last use, so a replay needs no more memory than a pass.
A program is written once; its constants are given when it is used (:meth:`bound`).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import lru_cache, partial
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from caveat._strata import SLICE
from caveat._threads import in_order, one_core
from caveat._torch import below_autograd
from caveat.sampling.checks import Departed
from caveat.sampling.tape import Op, Ref, Tape, map_refs
from caveat.sampling.work import held_by, returned_by, work_of

# Noise is drawn for several draws at a time, as many as keep it in a fast cache.
_NOISE_PER_BLOCK = 1 << 20
_NOISE_KEPT = 1 << 18  # numbers; the same draws are often asked for again
_SETS_KEPT = 4
_WORTH_THREADS = 2e9  # multiplications; threads need some time to get going
_WAITING = 1 << 22  # numbers of outputs that may wait for those of earlier draws
_NO_WORK = 2e6  # as many as take less time than threads need to find each other
_AS_IT_IS = nullcontext()
_TOO_LARGE = (
    1 << 26
)  # numbers that a draw holds; several draws would hold several times


class Program:
    """The function of a tape, for any constants.

    Parameters
    ----------
    tape : Tape
        What to compute.
    handed : frozenset of int
        Constants that are given anew each time; the tape's own are used for others.
    together : int
        How many draws are computed at a time: if more than one, noise and outputs have
        an axis of draws in front.
    checked : bool
        Whether the last output says which of these draws go the way of the tape.
    """

    def __init__(
        self,
        tape: Tape,
        handed: frozenset[int],
        *,
        together: int = 1,
        checked: bool = False,
    ) -> None:
        self._writer = _Writer(tape)
        self.run = self._writer.compiled()
        self.together = together
        self.checked = checked
        self.constants = tuple(tape.constants)
        self.noises = tuple(tape.noises.values())
        self.work = sum(work_of(op, tape) for op in tape.ops)
        self.held = held_by(tape)
        self.returned = returned_by(tape)
        self.memo: dict[
            Any, list[Tensor]
        ] = {}  # noise of the last call, if it is small
        self._setup = tuple(tape.setup)
        made = handed | {op.result for op in self._setup}
        self._fixed = {n: c for n, c in tape.constants.items() if n not in made}

    @property
    def source(self) -> str:
        """The generated function, for reading."""
        return self._writer.source

    @property
    def per_draw(self) -> int:
        """Numbers of noise in a draw."""
        return max(1, sum(noise.numel for noise in self.noises))

    def bound(self, given: Mapping[int, Tensor]) -> "Bound":
        """Ready to draw, with these constants."""
        constants = {**self._fixed, **given}
        if self._setup:
            with torch.no_grad(), below_autograd():
                for op in self._setup:
                    args = map_refs(constants.__getitem__, op.args)
                    constants[op.result] = op.func(*args, **op.kwargs)
        return Bound(self, constants)


class Bound:
    """A program with its constants: a source of draws."""

    def __init__(self, program: Program, constants: dict[int, Tensor]) -> None:
        self._program = program
        self._by_number = constants
        self._constants = tuple(constants[n] for n in program.constants)

    @property
    def together(self) -> bool:
        """Whether draws are computed many at a time."""
        return self._program.together > 1

    @property
    def at_once(self) -> int:
        """How many draws are computed at a time."""
        return self._program.together

    @property
    def source(self) -> str:
        """The generated function, for reading."""
        return self._program.source

    def once(self) -> tuple[Tensor, ...]:
        """The outputs of a tape without noise."""
        with self._few_cores(1):
            return self._program.run(self._constants, ())

    def outputs(self, seed: int, draws: range) -> Iterator[tuple[Tensor, ...] | None]:
        """The noisy outputs of each draw, in the order of the tape's outputs.

        None for a draw in which the model might go another way.
        """
        if self.together:
            for numbers in self._blocks(draws):
                yield from self._each(seed, numbers, numbers)
            return
        n_threads = torch.get_num_threads()
        if n_threads > 1 and self._is_worth_threads(len(draws)):
            most = max(1, _WAITING // ((n_threads + 1) * self._program.returned))
            size = min(SLICE, max(1, len(draws) // (2 * n_threads)), most)
            one_part = partial(self._several, seed)
            for outputs in in_order(one_part, cut(draws, size), n_threads):
                yield from outputs
        else:
            yield from self._one_by_one(seed, draws)

    def outputs_of(
        self, seed: int, draws: range, wanted: Sequence[int]
    ) -> Iterator[tuple[int, tuple[Tensor, ...] | None]]:
        """As ``outputs``, of some draws among ``draws``, with their numbers."""
        if self.together:
            for start in range(0, len(wanted), self._program.together):
                numbers = wanted[start : start + self._program.together]
                yield from zip(numbers, self._each(seed, draws, numbers), strict=True)
            return
        with torch.no_grad(), below_autograd():
            noise = [values.unbind(0) for values in self._noise(seed, draws, [])]
        for draw in wanted:
            of_one_draw = [values[draw - draws.start] for values in noise]
            yield draw, self._of_one(of_one_draw)

    def _each(
        self, seed: int, draws: range, wanted: Sequence[int]
    ) -> list[tuple[Tensor, ...] | None]:
        """Some of these draws, computed together; None for those that go elsewhere."""
        with self._few_cores(len(wanted)), torch.no_grad(), below_autograd():
            noise = self._noise(seed, draws, [])
            if len(wanted) < len(draws):
                places = torch.tensor([draw - draws.start for draw in wanted])
                noise = [v.index_select(0, places.to(v.device)) for v in noise]
            return self._those_going(noise, len(wanted))

    def _those_going(
        self, noise: list[Tensor], n_draws: int
    ) -> list[tuple[Tensor, ...] | None]:
        try:
            columns = self._program.run(self._constants, noise)
        except Departed:
            return [None] * n_draws
        except (RuntimeError, IndexError, ValueError):
            if n_draws == 1 or not self._program.checked:
                raise
            # A draw that has left this way may come to where it cannot go on.
            ones = [[v[n : n + 1] for v in noise] for n in range(n_draws)]
            return [self._those_going(one, 1)[0] for one in ones]
        goes = [True] * n_draws
        if self._program.checked:
            columns, goes = columns[:-1], columns[-1].tolist()
        values = [column.unbind(0) for column in columns]
        return [
            tuple(column[n] for column in values) if goes[n] else None
            for n in range(n_draws)
        ]

    def _of_one(self, noise: Sequence[Tensor]) -> tuple[Tensor, ...] | None:
        with suppress(Departed), torch.no_grad(), below_autograd():
            return self._program.run(self._constants, noise)
        return None

    def _several(self, seed: int, draws: range) -> list[tuple[Tensor, ...] | None]:
        return list(self._one_by_one(seed, draws))

    def _one_by_one(
        self, seed: int, draws: range
    ) -> Iterator[tuple[Tensor, ...] | None]:
        # A generator must not be left waiting inside these blocks: its caller would be
        # in them, too.
        streams: list[Callable[[range], Tensor]] = []
        for numbers in self._blocks(draws):
            with torch.no_grad(), below_autograd():
                values = self._noise(seed, numbers, streams)
                noise = [of_site.unbind(0) for of_site in values]
            for of_one_draw in zip(*noise, strict=True):
                yield self._of_one(of_one_draw)

    def _is_worth_threads(self, n_draws: int) -> bool:
        """Whether threads for several draws are soon paid for, and not too large."""
        work = n_draws * self._program.work
        return n_draws > 1 and work > _WORTH_THREADS and self._program.held < _TOO_LARGE

    def blocks(self, seed: int, draws: range) -> Iterator[tuple[Tensor, ...]]:
        """The noisy outputs of many draws at a time, (draws, *shape)."""
        streams: list[Callable[[range], Tensor]] = []
        for numbers in self._blocks(draws):
            with self._few_cores(len(draws)), torch.no_grad(), below_autograd():
                noise = self._noise(seed, numbers, streams)
                outputs = self._program.run(self._constants, noise)
            yield outputs

    def _few_cores(self, n_draws: int) -> AbstractContextManager[Any]:
        """One core for so little work that others would come too late."""
        return one_core() if n_draws * self._program.work < _NO_WORK else _AS_IT_IS

    def _noise(
        self, seed: int, draws: range, streams: list[Callable[[range], Tensor]]
    ) -> list[Tensor]:
        """Noise of some draws; ``streams`` are made when first needed."""
        key, memo = (seed, draws), self._program.memo
        noise = memo.get(key)
        if noise is None:
            if not streams:
                streams += [spec.stream(seed) for spec in self._program.noises]
            noise = [stream(draws) for stream in streams]
            if sum(values.numel() for values in noise) <= _NOISE_KEPT:
                if len(memo) >= _SETS_KEPT:
                    memo.clear()
                memo[key] = noise
        return [
            spec.finished(values, self._by_number)
            for spec, values in zip(self._program.noises, noise, strict=True)
        ]

    def _blocks(self, draws: range) -> Iterator[range]:
        size = max(1, min(1024, _NOISE_PER_BLOCK // self._program.per_draw))
        size = self._program.together if self.together else size
        for start in range(0, len(draws), size):
            yield draws[start : start + size]


def cut(draws: range, size: int) -> Iterator[range]:
    """Consecutive draws in parts that end at multiples of ``size``."""
    start = draws.start
    while start < draws.stop:
        stop = min(draws.stop, (start // size + 1) * size)
        yield range(start, stop)
        start = stop


class _Writer:
    """Writes the source of a tape."""

    def __init__(self, tape: Tape) -> None:
        self._tape = tape
        self._pool: dict[str, Any] = {}
        self._pool_names: dict[int, str] = {}
        self.source = "\n".join(self._lines())

    def compiled(self) -> Callable[..., tuple[Tensor, ...]]:
        """The function (constants, noise) -> noisy outputs."""
        namespace = dict(self._pool)
        exec(_compiled(self.source), namespace)
        return namespace["run"]

    def _lines(self) -> Iterator[str]:
        tape = self._tape
        yield "def run(constants, noise):"
        yield from self._unpack("constants", tape.constants)
        yield from self._unpack("noise", tape.noises)
        last = self._last_uses()
        for position, op in enumerate(tape.ops):
            yield f"    {self._call(op)}"
            if dead := last.get(position):
                yield f"    del {', '.join(f'v{n}' for n in dead)}"
        outputs = [f"v{r.number}," for r in tape.outputs if isinstance(r, Ref)]
        yield f"    return ({' '.join(outputs)})"

    def _unpack(
        self, name: str, numbers: Sequence[int] | dict[int, Any]
    ) -> Iterator[str]:
        if numbers:
            yield f"    {' '.join(f'v{n},' for n in numbers)} = {name}"

    def _last_uses(self) -> dict[int, list[int]]:
        """Values to let go after each operation."""
        kept = {r.number for r in self._tape.outputs if isinstance(r, Ref)}
        kept |= self._tape.constants.keys()
        last: dict[int, int] = {}
        for position, op in enumerate(self._tape.ops):
            for number in (*op.results, *op.reads()):
                if number is not None and number not in kept:
                    last[number] = position
        dead: dict[int, list[int]] = {}
        for number, position in last.items():
            dead.setdefault(position, []).append(number)
        return dead

    def _call(self, op: Op) -> str:
        arguments = [self._text(a) for a in op.args]
        arguments += [f"{k}={self._text(v)}" for k, v in op.kwargs.items()]
        call = f"{self._pooled(op.func)}({', '.join(arguments)})"
        if op.is_check:
            return call
        if op.unpack:
            targets = ["_" if n is None else f"v{n}" for n in op.results]
            return f"{', '.join(targets)}, = {call}" if targets else call
        return call if op.results[0] is None else f"v{op.result} = {call}"

    def _text(self, argument: Any) -> str:
        if isinstance(argument, Ref):
            return f"v{argument.number}"
        if isinstance(argument, list | tuple):
            inside = ", ".join(self._text(a) for a in argument)
            return f"[{inside}]"
        if argument is None or isinstance(argument, bool | int | str):
            return repr(argument)
        if isinstance(argument, float) and math.isfinite(argument):
            return repr(argument)
        return self._pooled(argument)

    def _pooled(self, value: Any) -> str:
        name = self._pool_names.get(id(value))
        if name is None:
            stem = getattr(value, "__name__", type(value).__name__)
            name = f"{stem.replace('.', '_')}_{len(self._pool)}"
            self._pool_names[id(value)] = name
            self._pool[name] = value
        return name


@lru_cache(maxsize=256)
def _compiled(source: str) -> CodeType:
    return compile(source, "<caveat replay>", "exec")
