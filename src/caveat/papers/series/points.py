"""The numbers behind the figures of a series: what each model says at each place."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STANDARD, MC, PROCESS = "standard dropout", "MC dropout", "GP"


@dataclass(frozen=True)
class Point:
    """A prediction of one model at one place.

    Attributes
    ----------
    model : str
        Name of the net or the covariance function.
    method : str
        ``"standard dropout"``, ``"MC dropout"`` or ``"GP"``.
    n_steps, n_draws : int
        Of training, and of MC dropout; 0 where there are none.
    part : str
        Where the place is, such as ``"train"``.
    x, y : float
        Place and observation, NaN if there is none; standardised as in the paper.
    mean, sd : float
        Of the function without noise; the sd is NaN if the method gives none.
    noise_sd : float
        Of an observation around the function, as estimated on the training data.
    """

    model: str
    method: str
    n_steps: int
    n_draws: int
    part: str
    x: float
    y: float
    mean: float
    sd: float
    noise_sd: float

    @property
    def curve(self) -> "Key":
        """The curve that it lies on."""
        return self.model, self.method, self.n_steps, self.n_draws


Key = tuple[str, str, int, int]  # model, method, steps, draws


@dataclass(frozen=True, eq=False)
class Places:
    """Where models are asked, and what was observed there.

    Attributes
    ----------
    part : tuple of str
    x, y : array, shape (places,)
    """

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

    @classmethod
    def of(
        cls,
        points: Iterable[Point],
        model: str,
        method: str,
        *,
        n_draws: int = 0,
        untrained: bool = False,
    ) -> "Curve":
        """The curve of a model; ``untrained`` asks for the net before its training."""
        return cls(
            tuple(
                p
                for p in points
                if (p.model, p.method, p.n_draws) == (model, method, n_draws)
                and (method == PROCESS or (p.n_steps == 0) == untrained)
            )
        )

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

    def coverage(self, *, noise: bool) -> float:
        """Share of the observations within two standard deviations.

        Parameters
        ----------
        noise : bool
            Whether the deviation is that of an observation, or of the function only.

        Returns
        -------
        float
        """
        variance = self.column("sd") ** 2
        if noise:
            variance = variance + self.column("noise_sd") ** 2
        gap = np.abs(self.column("mean") - self.column("y"))
        return float((gap <= 2.0 * np.sqrt(variance)).mean())
