"""Draws from a tape: one after the other, or many at a time."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from caveat._strata import SLICE
from caveat.errors import CaveatError
from caveat.sampling.program import Program
from caveat.sampling.rewriting import (
    compute_parts,
    draws_together,
    hoist_small_heads,
    optimised,
    without_writes,
)
from caveat.sampling.tape import Ref, Tape
from caveat.sampling.work import OPERATION, held_by, starts_of, work_of

_BESIDE = 3  # draws that are computed to look at one of them
_TOGETHER = 1 << 23  # numbers that may be held for draws computed together
_FEWEST = 8  # draws that are computed together, however large they are
_SMALL = 16  # times the work of starting an operation; tried on small networks


class Replay:
    """A program with the constants of a batch, as a source of draws.

    ``leaves`` are those of the model's output, Ref where they depend on noise.
    """

    def __init__(
        self, program: Program, constants: dict[int, Tensor], leaves: Sequence[Any]
    ) -> None:
        self._program = program.bound(constants)
        self._leaves = leaves
        self._noisy = [i for i, out in enumerate(leaves) if isinstance(out, Ref)]

    @property
    def together(self) -> bool:
        """Whether draws are computed many at a time."""
        return self._program.together

    @property
    def at_once(self) -> int:
        """How many draws are computed at a time."""
        return self._program.at_once

    @property
    def source(self) -> str:
        """The program, which stands for its logic."""
        return self._program.source

    def leaves(self, seed: int, draws: range) -> Iterator[list[Any] | None]:
        """The leaves of each draw; None if the model might go another way in it."""
        for noisy in self._program.outputs(seed, draws):
            yield None if noisy is None else self._filled(noisy)

    def some(
        self, seed: int, draws: range, *, without: Collection[int]
    ) -> Iterator[tuple[int, list[Any] | None]]:
        """The leaves of those draws that are not in ``without``, with their numbers."""
        wanted = [draw for draw in draws if draw not in without]
        for draw, noisy in self._program.outputs_of(seed, draws, wanted):
            yield draw, None if noisy is None else self._filled(noisy)

    def blocks(self, seed: int, draws: range) -> Iterator[list[Any]]:
        """The leaves of many draws at a time, with the draws in front."""
        for noisy in self._program.blocks(seed, draws):
            leaves = self._filled(noisy)
            for position, leaf in enumerate(leaves):
                if isinstance(leaf, Tensor) and position not in self._noisy:
                    leaves[position] = leaf.expand(len(noisy[0]), *leaf.shape)
            yield leaves

    def agrees(self, seed: int, draw: int, expected: Sequence[Any]) -> bool:
        """Whether replaying a draw gives what the model gave.

        Beside it some more are asked for: draws computed together must not mix.
        """
        more = _BESIDE if self.together else 1
        try:
            again = next(self.leaves(seed, range(draw, draw + more)))
        except CaveatError:
            raise
        except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
            return False
        if again is None:
            return False
        return same_leaves(again[: len(expected)], expected)

    def _filled(self, noisy: Sequence[Tensor]) -> list[Any]:
        leaves = list(self._leaves)
        for position, tensor in zip(self._noisy, noisy, strict=True):
            leaves[position] = tensor
        return leaves


def same_leaves(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Whether two outputs have the same tensors, up to rounding."""
    pairs = [p for p in zip(found, expected, strict=True) if isinstance(p[1], Tensor)]
    return all(isinstance(one, Tensor) and _close(one, two) for one, two in pairs)


def programs(tape: Tape, handed: frozenset[int]) -> Iterator[Program]:
    """Ways to run a tape, the fastest first; the last is the tape as it is."""
    plain = tape.copy()
    without_writes(plain)
    plain.drop_dead()
    compute_parts(plain)
    if _is_mostly_overhead(plain):
        at_once = _draws_at_once(plain)
        hoist_small_heads(plain)
        plain.drop_dead()
        together = draws_together(plain)
        if together is not None:
            checked = any(op.is_check for op in plain.ops)
            yield Program(together, handed, together=at_once, checked=checked)
    yield Program(optimised(tape), handed)
    yield Program(tape, handed)


def _is_mostly_overhead(tape: Tape) -> bool:
    """Whether draws are so small that they are faster together than one by one.

    Not only is each operation started once for all: a product with few rows is mostly
    spent on fetching its weights.
    """
    work = sum(work_of(op, tape) for op in tape.ops)
    starts = 1 + sum(starts_of(op, tape) for op in tape.ops)
    return work <= _SMALL * OPERATION * starts


def _draws_at_once(tape: Tape) -> int:
    """How many draws to compute together, a multiple of a slice of draws."""
    draws = _TOGETHER // max(1, held_by(tape))
    return draws // SLICE * SLICE if draws >= SLICE else max(_FEWEST, draws)


def _close(left: Any, right: Any) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if not left.is_floating_point():
        return bool((left != right).float().mean() < 0.01) if left.numel() else True
    tolerance = max(1e-4, 4 * torch.finfo(left.dtype).eps ** 0.5)
    finite = right[torch.isfinite(right)]
    scale = float(finite.abs().max()) if finite.numel() else 0.0
    return torch.allclose(
        left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True
    )
