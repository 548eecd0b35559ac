"""The contract of all reproductions: jobs, records, a page with claims, a figure."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from matplotlib.figure import Figure

from caveat.papers.page import Part

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

J = TypeVar("J", bound=Hashable)
R = TypeVar("R", bound="DataclassInstance")


@dataclass(frozen=True)
class Experiment(ABC, Generic[J, R]):
    """A figure or table of a paper, to be computed in a folder.

    Only :meth:`run` trains or computes. Page and figure are made from the records, as
    they are read back from the CSV file, so that they can be made again at any time.

    Attributes
    ----------
    folder : Path
        For NAME.csv, NAME.md and NAME.png; made when the first file is written.
    quick : bool
        Whether this is a smoke test, which has files of its own, NAME_quick.
    name : str
        Of the files, and as in ``caveat reproduce NAME``.
    title : str
        Of the page.
    record : type
        The dataclass of records: strings and numbers.
    brief : bool
        Whether it takes seconds: then it is run anew each time, in this process.
    """

    folder: Path
    quick: bool = False

    brief = False

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def title(self) -> str: ...

    @property
    @abstractmethod
    def record(self) -> type[R]: ...

    @abstractmethod
    def jobs(self, records: Sequence[R]) -> Sequence[J]:
        """All jobs that are known by now, in the order of their records.

        Parameters
        ----------
        records : sequence of records
            Found so far. Jobs may depend on them: when all are done, those that follow
            from their records are asked for.

        Returns
        -------
        sequence of jobs
            Each is sent to another process.
        """

    @abstractmethod
    def run(self, job: J) -> list[R]:
        """The records of a job: the only place that trains or computes."""

    @abstractmethod
    def key(self, record: R) -> Hashable:
        """What finds a record's job again: one of :meth:`keys` of that job."""

    def keys(self, job: J) -> Collection[Hashable]:
        """All keys of a job's records; by default the job is its own key."""
        return (job,)

    def is_done(self, job: J, known: Collection[Hashable]) -> bool:
        """Whether the keys of all stored records have those of a job."""
        return all(key in known for key in self.keys(job))

    def ordered(self, known: Mapping[Hashable, list[R]]) -> list[R]:
        """Records by their key, in the order of the file: job after job, no others."""
        jobs = self.jobs([record for own in known.values() for record in own])
        keys = [key for job in jobs for key in self.keys(job)]
        return [record for key in keys for record in known.get(key, ())]

    @abstractmethod
    def page(self, records: Sequence[R]) -> Iterator[Part]:
        """The parts of the page below its head."""

    def in_brief(self, records: Sequence[R]) -> tuple[str, str] | None:
        """What the paper says and what was found, in a few words each, if it can be."""
        return None

    @abstractmethod
    def figure(self, records: Sequence[R]) -> Figure:
        """The drawing; the house's style is switched on."""

    def further_figures(self, records: Sequence[R]) -> dict[str, Figure]:
        """Others by what their names end in, NAME_END.png; by default none."""
        return {}

    def cpu_seconds(self, records: Sequence[R]) -> float:
        """What they took together, of records that tell their seconds."""
        told: Sequence[Any] = records
        return float(sum(record.seconds for record in told))

    def extras(self, records: Sequence[R]) -> None:
        """Write other files, after the jobs and before page and figure."""

    @property
    def command(self) -> str:
        """What makes these files."""
        return f"caveat reproduce {self.name}" + (" --quick" if self.quick else "")

    def path(self, ending: str, part: str = "") -> Path:
        """The file that ends so; ``part`` tells figures of one page apart."""
        quick = "_quick" if self.quick else ""
        between = f"_{part}" if part else ""
        return self.folder / f"{self.name}{quick}{between}.{ending}"


AnyExperiment = Experiment[Any, Any]
