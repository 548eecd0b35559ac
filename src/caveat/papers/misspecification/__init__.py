"""Figure 1b of paper 002: ridge and dropout when the model is wrong."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from matplotlib.figure import Figure

from caveat.papers.experiment import Experiment
from caveat.papers.misspecification.figure import draw
from caveat.papers.misspecification.records import Record, summarise
from caveat.papers.misspecification.report import render
from caveat.papers.misspecification.simulation import (
    CONDITIONS,
    N_FEATURES,
    parts,
    run_part,
)
from caveat.papers.page import Part

__all__ = ["Misspecification"]

Job = tuple[str, int, int]  # condition, features, data sets


@dataclass(frozen=True)
class Misspecification(Experiment[Job, Record]):
    """Nine panels, two methods; a job is a panel."""

    name = "misspecification"
    title = "Figure 1b of paper 002: ridge and dropout under misspecification"
    record = Record

    @property
    def n_sets(self) -> int:
        """Data sets of a panel."""
        return 2_500 if self.quick else 100_000

    def jobs(self, records: Sequence[Record]) -> list[Job]:
        return list(product(CONDITIONS, N_FEATURES, [self.n_sets]))

    def key(self, record: Record) -> Job:
        return record.condition, record.n_features, record.n_sets

    def run(self, job: Job) -> list[Record]:
        own = parts(*job)
        return summarise(own, [run_part(part) for part in own])

    def page(self, records: Sequence[Record]) -> Iterator[Part]:
        return render(records)

    def figure(self, records: Sequence[Record]) -> Figure:
        return draw(records)
