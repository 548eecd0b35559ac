"""Table 1 of paper 001: nine regression sets, four protocols."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from caveat.data import load_uci
from caveat.papers.experiment import Experiment
from caveat.papers.page import Part
from caveat.papers.table1.figure import draw
from caveat.papers.table1.jobs import Job
from caveat.papers.table1.protocols import variants
from caveat.papers.table1.records import Key, Record
from caveat.papers.table1.report import render
from caveat.papers.table1.scoring import run

__all__ = ["SETS", "Table1"]

SETS = (
    "boston",
    "concrete",
    "energy",
    "kin8nm",
    "naval",
    "power",
    "protein",
    "wine",
    "yacht",
)
_SPLITS_PER_JOB = {"paper": 20}  # whose splits have few networks each
_FEW_SPLITS = 5


@dataclass(frozen=True)
class Table1(Experiment[Job, Record]):
    """A protocol of Table 1; a job is some splits of a set.

    Attributes
    ----------
    protocol : str
        ``"paper"``, ``"grid"``, ``"best"`` or ``"flagship"``.
    sets : str
        Short names with commas, by default all; what the file holds of others is
        shown, too.
    splits : int, optional
        Only the first so many of each set.
    """

    protocol: str = "paper"
    sets: str = ""
    splits: int | None = None

    record = Record

    @property
    def name(self) -> str:
        return f"table1_{self.protocol}"

    @property
    def title(self) -> str:
        return f"Table 1 of paper 001, protocol `{self.protocol}`"

    @property
    def command(self) -> str:
        quick = " --quick" if self.quick else ""
        return f"caveat reproduce table1 --protocol {self.protocol}{quick}"

    def jobs(self, records: Sequence[Record]) -> list[Job]:
        """Those of missing splits, the largest sets first."""
        known = {record.key for record in records}
        names = [name.strip() for name in self.sets.split(",")] if self.sets else SETS
        sizes = {name: load_uci(name) for name in names}
        return [
            job
            for name in sorted(names, key=lambda name: -len(sizes[name]))
            for own in variants(self.protocol, name)
            for job in self._jobs(name, own, len(sizes[name].splits), known)
        ]

    def _jobs(
        self, dataset: str, own: tuple[str, ...], n_splits: int, known: set[Key]
    ) -> Iterator[Job]:
        count = n_splits if self.splits is None else min(self.splits, n_splits)
        whole = Job(str(self.protocol), own, dataset, tuple(range(count)), self.quick)
        missing = [
            k for k in whole.splits if not known.issuperset(whole.only((k,)).keys)
        ]
        size = _SPLITS_PER_JOB.get(self.protocol, _FEW_SPLITS)
        for start in range(0, len(missing), size):
            yield whole.only(tuple(missing[start : start + size]))

    def key(self, record: Record) -> Key:
        return record.key

    def keys(self, job: Job) -> list[Key]:
        return job.keys

    def ordered(self, known: Mapping[Hashable, list[Record]]) -> list[Record]:
        """All that the file holds, by their keys."""
        return sorted((r for own in known.values() for r in own), key=self.key)

    def run(self, job: Job) -> list[Record]:
        return run(job)

    def page(self, records: Sequence[Record]) -> Iterator[Part]:
        return render(records)

    def figure(self, records: Sequence[Record]) -> Figure:
        return draw(records)
