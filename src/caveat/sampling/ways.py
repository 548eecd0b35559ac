"""A way that a model goes on a batch, to be replayed for any draw."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch

from caveat.sampling.program import Program
from caveat.sampling.replay import Replay, programs
from caveat.sampling.tape import Ref, Tape
from caveat.sampling.templates import Constants, Template

Agrees = Callable[[Replay, int | None], bool]
_LESS = 0.95  # of the work of all leaves, for one alone
_NOTHING = torch.empty(0)


class Way:
    """A template with the constants of a batch."""

    def __init__(self, template: Template, constants: Constants) -> None:
        self.template = template
        self.constants = constants

    @cached_property
    def replay(self) -> Replay:
        """A source of draws; :meth:`settle` has found it."""
        leaves = self.template.leaves(self.constants)
        return Replay(self.template.memo["program"], self.constants, leaves)

    def tape(self) -> Tape:
        """The noisy part, as a tape of its own."""
        return self.template.tape(self.constants)

    def replay_of(self, program: Program, more: Ref) -> Replay:
        """Draws by another program, which gives one value after the leaves."""
        leaves = [*self.template.leaves(self.constants), more]
        return Replay(program, self.constants, leaves)

    def alone(self, only: int, agrees: Agrees) -> Replay | None:
        """Draws of one leaf, if that is less work; the others are empty."""
        leaves: list[Any] = [
            _NOTHING if isinstance(out, Ref) and number != only else out
            for number, out in enumerate(self.template.leaves(self.constants))
        ]
        memo, key = self.template.memo, ("alone", only)
        if key not in memo:
            memo[key] = self._settled_alone(only, leaves, agrees)
        program = memo[key]
        return None if program is None else Replay(program, self.constants, leaves)

    def _settled_alone(
        self, only: int, leaves: list[Any], agrees: Agrees
    ) -> Program | None:
        """The fastest program for one leaf, if it is worth the trouble."""
        whole: Program = self.template.memo["program"]
        tape = self.tape()
        tape.outputs = leaves
        tape.drop_dead()
        for program in programs(tape, self.template.handed):
            if program.work > _LESS * whole.work or program.together < whole.together:
                return None
            if agrees(Replay(program, self.constants, leaves), only):
                return program
        return None

    def again(self, seed: int, draw: int) -> list[Any] | None:
        """The leaves of a draw, if it goes this way."""
        return next(self.replay.leaves(seed, range(draw, draw + 1)))

    def settle(self, agrees: Callable[[Replay], bool]) -> bool:
        """Find the fastest program that gives what the model gave."""
        leaves = self.template.leaves(self.constants)
        for program in programs(self.tape(), self.template.handed):
            replay = Replay(program, self.constants, leaves)
            if agrees(replay):
                self.template.memo["program"] = program
                return True
        return False
