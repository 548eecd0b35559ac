"""What CO2 and solar share: the jobs, the settings, the table of numbers."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from caveat.papers.experiment import Experiment
from caveat.papers.page import Part, flow, table
from caveat.papers.series.models import (
    KERNELS,
    RELU_5,
    Model,
    NetModel,
    ProcessModel,
    SeriesTask,
)
from caveat.papers.series.nets import BIAS_RATE, MOMENTUM, RELEASED_STEPS, Net
from caveat.papers.series.points import Curve, Curves, Key, Point


@dataclass(frozen=True)
class SeriesEffort:
    """How much work to put in."""

    width: int  # of the nets
    n_steps: int
    n_draws: int  # of MC dropout
    every: int  # predict at every so many observations; more would only take longer
    n_restarts: int  # of the search for hyper-parameters of a Gaussian process

    @property
    def size(self) -> dict[str, int]:
        """That of the nets."""
        return {"n_steps": self.n_steps, "width": self.width}


QUICK = SeriesEffort(width=48, n_steps=60, n_draws=50, every=8, n_restarts=0)


@dataclass(frozen=True)
class Series(Experiment[Model, Point]):
    """Nets and Gaussian processes on a series; weights are kept in NAME.nets."""

    record = Point
    asked_before: ClassVar[tuple[str, ...]] = ()  # nets, before their training, too

    @property
    @abstractmethod
    def full(self) -> SeriesEffort:
        """That of the results."""

    @property
    def effort(self) -> SeriesEffort:
        """That of this run."""
        return QUICK if self.quick else self.full

    @property
    @abstractmethod
    def nets(self) -> tuple[Net, ...]:
        """The longest first."""

    @property
    @abstractmethod
    def task(self) -> SeriesTask:
        """The series."""

    @abstractmethod
    def row(self, curve: Curve) -> dict[str, str]:
        """The numbers of a curve: four on its sd, some errors, two coverages."""

    def curves(self, records: Sequence[Point]) -> Curves:
        """The records by their curves."""
        return Curves(records, self.effort.n_draws)

    def jobs(self, records: Sequence[Point]) -> list[Model]:
        trained = [NetModel(net, self.effort.n_draws) for net in self.nets]
        processes = [ProcessModel(name, self.effort.n_restarts) for name in KERNELS]
        before = [m.untrained for m in trained if m.net.name in self.asked_before]
        return [*trained, *processes, *before]

    def key(self, record: Point) -> Key:
        return record.curve

    def keys(self, job: Model) -> list[Key]:
        return job.curves

    def run(self, job: Model) -> list[Point]:
        return job.points(self.task, self.path("nets"))

    def settings(self) -> Iterator[Part]:
        """How the nets were trained."""
        first = self.nets[0]
        yield flow(f"""Nets of {first.width} units per hidden layer (their names count
            weight layers, as the released files explain the paper's count), dropout
            after every hidden non-linearity and none on the input. Trained as in the
            released files: gradient descent with momentum {MOMENTUM:g}, batches of
            {first.batch_size}, rate · (1 + γ step)^-power, biases at {BIAS_RATE:g}
            times the rate, half squared error, decay added to the gradient.
            **Iterations: {first.n_steps:,}; the paper has {RELEASED_STEPS:,}.** All
            else is as released.""")
        yield table(
            {
                "net": net.name,
                "drop rate": f"{net.drop_rate:g}",
                "rate": f"{net.rate:g}",
                "decay": f"{net.weight_decay:g}",
                "γ": f"{net.gamma:g}",
                "power": f"{net.power:g}",
            }
            for net in self.nets
        )

    def numbers(self, curves: Curves, named: Mapping[str, Curve]) -> str:
        """The table of all curves; standard dropout has no sd."""
        standard = self.row(curves.standard(RELU_5))
        names = list(standard)
        standard |= dict.fromkeys(names[:4], "none") | dict.fromkeys(names[-2:], "-")
        rows = {f"{RELU_5}, standard": standard}
        rows |= {name: self.row(curve) for name, curve in named.items()}
        return table({"model": name, **row} for name, row in rows.items())
