"""``caveat reproduce`` of squares that take their time, with arguments FOLDER SECONDS.

Two of them are there at once; the others take so many seconds each.
"""

import sys
import time
from dataclasses import dataclass
from typing import ClassVar

from caveat.cli import main
from caveat.papers.catalogue import Reproduction
from tests.papers.squares import Square, Squares


@dataclass(frozen=True)
class SlowSquares(Squares):
    numbers: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    seconds: float = 0.0
    at_once: ClassVar[tuple[int, ...]] = (
        2,
        5,
    )  # not the first: those are still at work

    def run(self, job: int) -> list[Square]:
        if job not in self.at_once:
            time.sleep(self.seconds)
        return super().run(job)


def command(folder: str, seconds: str) -> int:
    """The command in whose place these squares are put."""
    from tests.papers.slow_squares import SlowSquares  # as workers can find it

    def experiment(self: Reproduction, output, *, quick=False):
        return SlowSquares(output, quick, seconds=float(seconds))

    Reproduction.experiment = experiment
    return main(["reproduce", "softmax", "--workers", "3", "--output", folder])


if __name__ == "__main__":
    sys.exit(command(*sys.argv[1:]))
