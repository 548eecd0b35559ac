"""What follows a few units that are rarely dropped, computed once for most draws.

Dropout of 0.05 on 13 inputs leaves all of them in every second draw. Until other noise
comes in, these draws are the same: the first layer of the network, as a rule.
"""

import hashlib
from dataclasses import replace

import torch
from torch import Tensor

from caveat.sampling.noise import Mask, NoiseSpec
from caveat.sampling.program import Program
from caveat.sampling.rewriting.in_place import reuse_memory
from caveat.sampling.tape import Op, Ref, Tape
from caveat.sampling.work import OPERATION, work_of

_OFTEN = 0.25  # of the draws; for fewer it is not worth the memory


def share_starts(tape: Tape) -> None:
    """Compute what hangs on such a mask alone for the whole mask, and keep that."""
    for number, noise in list(tape.noises.items()):
        if not isinstance(noise, NoiseSpec) or not isinstance(noise.law, Mask):
            continue
        if noise.law.keep_prob**noise.numel < _OFTEN:
            continue
        start = _start(tape, number)
        if start and sum(work_of(op, tape) for op in start) > 2 * OPERATION:
            _share(tape, number, noise, start)


def _start(tape: Tape, mask: int) -> list[Op]:
    """The operations that hang on this noise alone, if they end in one value."""
    own, found = {mask}, []
    for op in tape.ops:
        drawn = {n for n in op.reads() if n not in tape.constants}
        if drawn and drawn <= own and len(op.results) == 1 and not op.writes:
            if op.results[0] is not None and not op.unpack:
                found.append(op)
                own.add(op.result)
    return found if len(_ends(tape, found)) == 1 else []


def _ends(tape: Tape, start: list[Op]) -> set[int]:
    """The values of these operations that others read."""
    inside = {id(op) for op in start}
    read = {n for op in tape.ops if id(op) not in inside for n in op.reads()}
    read |= {out.number for out in tape.outputs if isinstance(out, Ref)}
    return {op.result for op in start} & read


def _share(tape: Tape, mask: int, noise: NoiseSpec, start: list[Op]) -> None:
    (end,) = _ends(tape, start)
    run = _Start(_alone(tape, mask, noise, start, end))
    constants = [Ref(number) for number in run.constants]
    kept = torch.full(noise.shape, noise.law.centre, dtype=noise.dtype)
    whole = tape.add_constant(kept.to(noise.device), group=-1)
    full = tape.derive(run.once, Ref(whole), *constants)
    # What other draws will read must not be written over: it is no private value.
    value = tape.values[end]
    tape.values[end] = replace(value, group=tape.values[full].group)
    inside, args = {id(op) for op in start}, (Ref(mask), Ref(full), *constants)
    tape.ops = [
        Op(run, args, {}, (end,), path=op.path) if end in op.results else op
        for op in tape.ops
        if id(op) not in inside or end in op.results
    ]


def _alone(
    tape: Tape, mask: int, noise: NoiseSpec, start: list[Op], end: int
) -> Program:
    """A program of these operations."""
    part = replace(tape, ops=start, outputs=[Ref(end)], noises={mask: noise}, setup=[])
    part = part.copy()
    part.drop_dead()
    reuse_memory(part)
    return Program(part, frozenset())


class _Start:
    """The value that some operations end in: known if the mask drops nothing."""

    def __init__(self, program: Program) -> None:
        self.constants = program.constants
        self._run = program.run
        # Programs are compared by their source, of which this name is a part.
        digest = hashlib.sha256(program.source.encode()).hexdigest()
        self.__name__ = f"start_{digest[:16]}"

    def once(self, mask: Tensor, *constants: Tensor) -> Tensor:
        """The value for a mask."""
        return self._run(constants, (mask,))[0]

    def __call__(self, mask: Tensor, full: Tensor, *constants: Tensor) -> Tensor:
        return full if bool(mask.all()) else self.once(mask, *constants)
