"""Figure 1 of paper 001: softmax with and without the uncertainty of its input."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from caveat.papers.experiment import Experiment
from caveat.papers.page import Part
from caveat.papers.softmax.figure import draw
from caveat.papers.softmax.functions import DROPOUT, PROCESS, Point, points_of
from caveat.papers.softmax.report import render

__all__ = ["Softmax"]


@dataclass(frozen=True)
class Softmax(Experiment[str, Point]):
    """What figure 1 of paper 001 sketches, computed; a job is a model."""

    name = "softmax"
    title = "Figure 1 of paper 001: softmax input and output, computed"
    record = Point
    resumes = False

    @property
    def n_draws(self) -> int:
        return 200 if self.quick else 1000

    def jobs(self, records: Sequence[Point]) -> tuple[str, ...]:
        return DROPOUT, PROCESS

    def key(self, record: Point) -> str:
        return record.model

    def run(self, job: str) -> list[Point]:
        return points_of(job, 3 if self.quick else 20, self.n_draws)

    def page(self, records: Sequence[Point]) -> Iterator[Part]:
        return render(records, self.n_draws)

    def figure(self, records: Sequence[Point]) -> Figure:
        return draw(records)
