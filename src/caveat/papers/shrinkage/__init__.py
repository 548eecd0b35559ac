"""Figure 1a of paper 002: what dropout, ridge and lasso do to correlated weights."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from matplotlib.figure import Figure

from caveat.papers.experiment import Experiment
from caveat.papers.page import Part
from caveat.papers.shrinkage.figure import draw
from caveat.papers.shrinkage.report import render
from caveat.papers.shrinkage.weights import (
    METHODS,
    RATES,
    RATES_QUICK,
    SCALINGS,
    AminoAcids,
    Weight,
    path_of,
)

__all__ = ["Shrinkage"]


@dataclass(frozen=True)
class Shrinkage(Experiment[tuple[str, str], Weight]):
    """Weights on the amino acids; a job is a scaling of the columns and a method."""

    name = "shrinkage"
    title = "Figure 1a of paper 002: dropout, ridge and lasso as shrinkage"
    record = Weight
    resumes = False

    def jobs(self, records: Sequence[Weight]) -> list[tuple[str, str]]:
        return list(product(SCALINGS, METHODS))

    def key(self, record: Weight) -> tuple[str, str]:
        return record.scaling, record.method

    def run(self, job: tuple[str, str]) -> list[Weight]:
        scaling, method = job
        return list(path_of(method, scaling, RATES_QUICK if self.quick else RATES))

    def page(self, records: Sequence[Weight]) -> Iterator[Part]:
        return render(records, AminoAcids.load())

    def figure(self, records: Sequence[Weight]) -> Figure:
        return draw(records, AminoAcids.load())
