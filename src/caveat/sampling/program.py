"""A tape as a Python function: one line an operation, nothing else.

Replaying a draw calls this function with that draw's noise. No module code runs, and
each value is let go after its last use, so a replay needs no more memory than a pass.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any

import torch
from torch import Tensor

from caveat._torch import below_autograd
from caveat.sampling.tape import Op, Ref, Tape

# Noise is drawn for several draws at a time, as many as keep it in a fast cache.
_NOISE_PER_BLOCK = 1 << 20


class Program:
    """The draws of a tape, one after the other."""

    def __init__(self, tape: Tape) -> None:
        self._writer = _Writer(tape)
        self._run = self._writer.compiled()
        self._constants = tuple(tape.constants.values())
        self._specs = tuple(tape.noises.values())

    @property
    def source(self) -> str:
        """The generated function, for reading."""
        return self._writer.source

    def outputs(self, seed: int, draws: range) -> Iterator[tuple[Tensor, ...]]:
        """The noisy outputs of each draw, in the order of the tape's outputs."""
        # A generator must not be left waiting inside these blocks: its caller would be
        # in them, too.
        streams = [spec.stream(seed) for spec in self._specs]
        for block in self._blocks(draws):
            with torch.no_grad(), below_autograd():
                noise = [stream(block).unbind(0) for stream in streams]
            for of_one_draw in zip(*noise, strict=True):
                with torch.no_grad(), below_autograd():
                    outputs = self._run(self._constants, of_one_draw)
                yield outputs

    def _blocks(self, draws: range) -> Iterator[range]:
        numbers = max(1, sum(spec.numel for spec in self._specs))
        size = max(1, min(1024, _NOISE_PER_BLOCK // numbers))
        for start in range(0, len(draws), size):
            yield draws[start : start + size]


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
