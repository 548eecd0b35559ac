"""A small experiment in two stages: squares of numbers, then of their sum."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from matplotlib.figure import Figure

from caveat.papers.experiment import Experiment
from caveat.papers.page import Part, claim, verdict
from caveat.papers.style import panels


@dataclass(frozen=True)
class Square:
    number: int
    square: float


@dataclass(frozen=True)
class Squares(Experiment[int, Square]):
    numbers: tuple[int, ...] = (1, 2, 3)
    ran: ClassVar[list[int]] = []  # by this process

    name = "squares"
    title = "Squares"
    record = Square

    def jobs(self, records: Sequence[Square]) -> Sequence[int]:
        known = {record.number for record in records}
        total = (sum(self.numbers),) if known.issuperset(self.numbers) else ()
        return (*self.numbers, *total)

    def key(self, record: Square) -> Hashable:
        return record.number

    def run(self, job: int) -> list[Square]:
        if job < 0:
            raise ValueError("negative")
        self.ran.append(job)
        return [Square(job, job**2 + 1e-9)]

    def page(self, records: Sequence[Square]) -> Iterator[Part]:
        yield ", ".join(f"{record.square!r}" for record in records)
        yield claim("Squares are positive.", verdict(records[0].square > 0))

    def figure(self, records: Sequence[Square]) -> Figure:
        figure, grid = panels(height=2.0)
        grid[0, 0].plot([record.square for record in records])
        return figure


@dataclass(frozen=True)
class Forgetful(Squares):
    """Its records are those of another job."""

    def run(self, job: int) -> list[Square]:
        return [Square(job + 1, 0.0)]


@dataclass(frozen=True)
class Brief(Squares):
    brief = True
