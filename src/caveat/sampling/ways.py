"""A way that a model goes on a batch, to be replayed for any draw."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from caveat.sampling.program import Program
from caveat.sampling.replay import Replay, programs
from caveat.sampling.tape import Ref, Tape
from caveat.sampling.templates import Constants, Template


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
