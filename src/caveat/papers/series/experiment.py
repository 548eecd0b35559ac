"""What CO2 and solar share: the jobs, the settings, the table of numbers."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

from caveat.papers.experiment import Experiment
from caveat.papers.page import Part, flow, judging, table
from caveat.papers.series.fitted import FITTED, FittedNet
from caveat.papers.series.models import (
    KERNELS,
    RELU_5,
    Model,
    NetModel,
    ProcessModel,
    SeriesTask,
)
from caveat.papers.series.nets import BIAS_RATE, MOMENTUM, RELEASED_STEPS, Net
from caveat.papers.series.points import FITS, Curve, Curves, Key, Point
from caveat.papers.series.starts import HALF_WIDTH, REACH


@dataclass(frozen=True)
class SeriesEffort:
    """How much work to put in."""

    width: int  # of the nets
    n_steps: int
    n_draws: int  # of MC dropout
    every: int  # predict at every so many observations; more would only take longer
    n_restarts: int  # of the search for hyper-parameters of a Gaussian process
    fit: float = 1.0  # share of the steps of nets that fit

    @property
    def size(self) -> dict[str, int]:
        """That of the nets."""
        return {"n_steps": self.n_steps, "width": self.width}


QUICK = SeriesEffort(width=48, n_steps=60, n_draws=50, every=8, n_restarts=0, fit=0.02)


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
    def fitted(self) -> tuple[FittedNet, ...]:
        """Nets of the same sizes and drop rates that fit the data."""

    def relu(self, name: str, n_hidden: int, n_steps: int) -> FittedNet:
        """One that fits, of ReLU units."""
        size = self._size(n_steps)
        return FittedNet(name + FITTED, "relu", n_hidden, 0.1, 6e-4, **size)

    def tanh(
        self, name: str, drop_rate: float, n_steps: int, *, rate: float
    ) -> FittedNet:
        """One that fits, of tanh units."""
        size = self._size(n_steps)
        return FittedNet(name + FITTED, "tanh", 4, drop_rate, rate, scale=20.0, **size)

    def _size(self, n_steps: int) -> Any:
        n_steps = round(n_steps * self.effort.fit)
        return {"batch_size": 68, "n_steps": n_steps, "width": self.effort.width}

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
        trained = [
            NetModel(net, self.effort.n_draws) for net in (*self.nets, *self.fitted)
        ]
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
        yield from self._released()
        yield from self._fitted()

    def _fitted(self) -> Iterator[Part]:
        first = self.fitted[0]
        yield flow(f"""So short a training leaves those nets far from the data. Nets
            named "fitted" have the same layers, widths and drop rates, and differ in
            all else: Adam without decay, its rate falling to 0 along half a cosine,
            batches of {first.batch_size} random rows, a fresh mask per row and step.
            Other first weights, which are **another prior**: the kinks of the first
            layer are spread over the data. Tanh nets see x times 20 and have weights of
            variance 4 / fan-in. In ReLU nets half of the second layer begins as tents,
            a bias less hinges that open away from a random place ({HALF_WIDTH:g} from
            the top to the foot, hinges within about {REACH:g} of the place), the rest
            as ordinary units with a kink at a random training point each; weights of
            variance 2 / fan-in. Several settings were tried, one seed each, and these
            were chosen by the error on the training data alone. Claims are judged by
            models whose RMSE on the data is at most {FITS:g}, others are "not
            judged".""")
        yield table(
            {
                "net": net.name,
                "drop rate": f"{net.drop_rate:g}",
                "rate": f"{net.rate:g}",
                "x times": f"{net.scale:g}",
                "iterations": f"{net.n_steps:,}",
            }
            for net in self.fitted
        )

    def _released(self) -> Iterator[Part]:
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
        rows = {
            f"{n}, standard": self._bare(curves, n) for n in (RELU_5 + FITTED, RELU_5)
        }
        rows |= {name: self.row(curve) for name, curve in named.items()}
        return table({"model": name, **row} for name, row in rows.items())

    def _bare(self, curves: Curves, net: str) -> dict[str, str]:
        row = self.row(curves.standard(net))
        names = list(row)
        return row | dict.fromkeys(names[:4], "none") | dict.fromkeys(names[-2:], "-")


def fair(*curves: Curve) -> AbstractContextManager[None]:
    """Verdicts inside are given if all these curves fit the data."""
    return judging(all(curve.fits for curve in curves))
