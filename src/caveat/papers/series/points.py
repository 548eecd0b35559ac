"""The numbers behind the figures of a series: what each model says at each place."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STANDARD, MC, PROCESS = "standard dropout", "MC dropout", "GP"
FEW_DRAWS = 10  # fig. 3 of paper 001
FITS = 0.4  # RMSE on the training data, standardised, up to which a model fits

Key = tuple[str, str, int, int]  # model, method, steps, draws


@dataclass(frozen=True)
class Point:
    """A prediction of one model at one place; standardised as in the paper."""

    model: str  # name of the net or the covariance function
    method: str
    n_steps: int  # of training, and draws of MC dropout; 0 where there are none
    n_draws: int
    part: str  # where the place is, such as "train"
    x: float
    y: float  # what was observed, NaN if nothing was
    mean: float  # of the function without noise
    sd: float  # NaN if the method gives none
    noise_sd: float  # around the function, as estimated on the training data

    @property
    def curve(self) -> Key:
        """The curve that it lies on."""
        return self.model, self.method, self.n_steps, self.n_draws


@dataclass(frozen=True, eq=False)
class Places:
    """Where models are asked, and what was observed there; shape (places,) each."""

    part: tuple[str, ...]
    x: Array
    y: Array

    @classmethod
    def of(cls, parts: Sequence[tuple[str, Array, Array]]) -> "Places":
        """From (name, x, y) of each part, in the order of x."""
        names = [name for name, x, _ in parts for _ in x]
        x, y = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
        order = np.argsort(x, kind="stable")
        return cls(tuple(names[k] for k in order), x[order], y[order])

    def points(
        self, key: Key, mean: Array, sd: Array | float, noise_sd: float
    ) -> list[Point]:
        """The curve of a model."""
        columns = np.stack([self.x, self.y, mean, np.broadcast_to(sd, mean.shape)], 1)
        return [
            Point(*key, part, x, y, own_mean, own_sd, noise_sd)
            for part, (x, y, own_mean, own_sd) in zip(
                self.part, columns.tolist(), strict=True
            )
        ]


@dataclass(frozen=True, eq=False)
class Curve:
    """The points of one model, as arrays."""

    points: tuple[Point, ...]

    def part(self, *names: str) -> "Curve":
        """The points of some parts."""
        return Curve(tuple(p for p in self.points if p.part in names))

    def between(self, first: float, last: float) -> "Curve":
        """The points in an interval of x."""
        return Curve(tuple(p for p in self.points if first <= p.x <= last))

    def column(self, name: str) -> Array:
        """One attribute of all points."""
        return np.array([getattr(p, name) for p in self.points])

    @property
    def n_steps(self) -> int:
        """Of the training."""
        return self.points[0].n_steps

    @property
    def sd(self) -> float:
        """The mean standard deviation of the function."""
        return float(self.column("sd").mean())

    @property
    def error(self) -> float:
        """Root mean squared error of the mean."""
        return float(np.sqrt(np.square(self.column("mean") - self.column("y")).mean()))

    @property
    def fits(self) -> bool:
        """Whether the mean follows the training data; no claim is judged if not."""
        return self.part("train").error <= FITS

    def coverage(self, *, noise: bool) -> float:
        """Share of observations within two sds, of the function or with its noise."""
        variance = self.column("sd") ** 2
        if noise:
            variance = variance + self.column("noise_sd") ** 2
        gap = np.abs(self.column("mean") - self.column("y"))
        return float((gap <= 2.0 * np.sqrt(variance)).mean())


class Curves:
    """The curves of all models by name.

    Parameters
    ----------
    points : sequence of Point
        Of all models.
    n_draws : int
        The larger number of MC dropout's draws.
    """

    def __init__(self, points: Sequence[Point], n_draws: int) -> None:
        self._points, self.n_draws = points, n_draws

    def mc(self, model: str, n_draws: int | None = None) -> Curve:
        """MC dropout after training, with many draws or so many."""
        return self._curve(model, MC, n_draws or self.n_draws)

    def untrained(self, model: str) -> Curve:
        """MC dropout before training, which has fewer draws."""
        return self._curve(model, MC, self.n_draws // 10, trained=False)

    def standard(self, model: str) -> Curve:
        """Standard dropout after training."""
        return self._curve(model, STANDARD, 0)

    def process(self, name: str) -> Curve:
        """A Gaussian process."""
        return self._curve(name, PROCESS, 0, trained=False)

    def named(self, nets: Sequence[str], kernels: Sequence[str]) -> dict[str, Curve]:
        """All that have an sd, as pages name them; few draws of the first net only."""
        found = {f"{net}, T = {self.n_draws}": self.mc(net) for net in nets}
        found[f"{nets[0]}, T = {FEW_DRAWS}"] = self.mc(nets[0], FEW_DRAWS)
        return found | {f"GP, {name}": self.process(name) for name in kernels}

    def _curve(
        self, model: str, method: str, n_draws: int, *, trained: bool = True
    ) -> Curve:
        wanted = (model, method, n_draws, trained)
        return Curve(
            tuple(
                p
                for p in self._points
                if (p.model, p.method, p.n_draws, p.n_steps > 0) == wanted
            )
        )
