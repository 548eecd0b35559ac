"""Figure 2 of paper 002: praise or complaint, with and without dropout."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from matplotlib.figure import Figure

from caveat.data.reviews import CATEGORIES
from caveat.papers.experiment import Experiment
from caveat.papers.page import Part
from caveat.papers.reviews.figure import draw
from caveat.papers.reviews.report import render
from caveat.papers.reviews.runs import VERSIONS, Record, Split, run_split

__all__ = ["AmazonReviews"]

_PRECISIONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1e3, 3e3, 1e4)
_PRECISIONS_QUICK = (1.0, 10.0, 100.0, 1e3)


@dataclass(frozen=True)
class AmazonReviews(Experiment[Split, Record]):
    """Four categories, two versions; a job is a random split, with all λ0."""

    name = "reviews"
    title = "Figure 2 of paper 002: Amazon reviews"
    record = Record

    @property
    def precisions(self) -> tuple[float, ...]:
        """Values of λ0."""
        return _PRECISIONS_QUICK if self.quick else _PRECISIONS

    def jobs(self, records: Sequence[Record]) -> list[Split]:
        repeats = range(2 if self.quick else 40)
        return list(product(VERSIONS, CATEGORIES, repeats))

    def key(self, record: Record) -> tuple[Split, float]:
        return record.split, record.prior_precision

    def keys(self, job: Split) -> list[tuple[Split, float]]:
        return [(job, precision) for precision in self.precisions]

    def run(self, job: Split) -> list[Record]:
        return run_split(job, self.precisions)

    def page(self, records: Sequence[Record]) -> Iterator[Part]:
        return render(records)

    def figure(self, records: Sequence[Record]) -> Figure:
        return draw(records)
