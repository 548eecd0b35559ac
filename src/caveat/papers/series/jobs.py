"""The models of a series as jobs for many cores: train or fit, then ask."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, WhiteKernel
from torch import Tensor

from caveat._progress import ProgressBar
from caveat.papers.output import read_records, write_records
from caveat.papers.series.nets import Net, train
from caveat.papers.series.points import (
    MC,
    PROCESS,
    STANDARD,
    Array,
    Key,
    Places,
    Point,
)
from caveat.papers.workers import spread
from caveat.sampling import MCDropout
from caveat.theory import NetworkKernel

FEW_DRAWS = 10  # fig. 3 of the paper
_EXACT = 1e-12


@dataclass(frozen=True)
class Effort:
    """How much work to put in.

    Attributes
    ----------
    width, n_steps : int
        Of the nets.
    n_draws : int
        Of MC dropout.
    every : int
        Predict at every so many observations; more would only take longer.
    n_restarts : int
        Of the search for hyper-parameters of a Gaussian process.
    """

    width: int
    n_steps: int
    n_draws: int
    every: int
    n_restarts: int


@dataclass(frozen=True, eq=False)
class Task:
    """A series: what to learn from, and where to predict.

    Attributes
    ----------
    x, y : array, shape (rows,)
        Training data.
    places : Places
        With a part named ``"train"``.
    """

    x: Array
    y: Array
    places: Places


class Job(Protocol):
    """A model to train or to fit, and the curves it gives."""

    @property
    def keys(self) -> list[Key]:
        """The curves."""
        ...

    def points(self) -> list[Point]:
        """All of their points."""
        ...


@dataclass(frozen=True, eq=False)
class NetJob:
    """A dropout net: MC dropout with few and with many draws, standard dropout."""

    net: Net
    task: Task
    n_draws: int
    folder: Path

    @property
    def keys(self) -> list[Key]:
        """One curve for each way to predict."""
        name, n_steps = self.net.name, self.net.n_steps
        few = [(name, MC, n_steps, FEW_DRAWS)] if n_steps else []
        return [
            (name, STANDARD, n_steps, 0),
            *few,
            (name, MC, n_steps, self.n_draws),
        ]

    def points(self) -> list[Point]:
        """Train, or read what is trained, and predict."""
        file = self.folder / f"{self.net.name.replace(' ', '_')}.safetensors"
        module = train(self.net, self.task.x, self.task.y, file)
        x = torch.from_numpy(self.task.places.x.astype(np.float32))[:, None]
        with torch.no_grad():
            standard = _doubles(module(x))
        mc = MCDropout(module, seed=0)
        draws = _doubles(mc.draws(x, n_draws=self.n_draws))
        found = self.task.places.points(self.keys[0], standard, math.nan, math.nan)
        for key in self.keys[1:]:
            found += self._curve(key, draws[: key[-1]])
        return found

    def _curve(self, key: Key, draws: Array) -> list[Point]:
        """Mean and sd of draws (draws, places); the noise that the bound is best at."""
        places = self.task.places
        known = np.array([part == "train" for part in places.part])
        noise = math.sqrt(np.square(draws[:, known] - places.y[known]).mean())
        return places.points(key, draws.mean(0), draws.std(0), noise)


@dataclass(frozen=True, eq=False)
class ProcessJob:
    """A Gaussian process, its hyper-parameters by marginal likelihood."""

    name: str
    task: Task
    n_restarts: int

    @property
    def keys(self) -> list[Key]:
        """One curve."""
        return [(self.name, PROCESS, 0, 0)]

    def points(self) -> list[Point]:
        """Fit and predict."""
        noise = WhiteKernel(0.1, (1e-6, 1e1))
        process = GaussianProcessRegressor(
            covariance(self.name) + noise,
            n_restarts_optimizer=self.n_restarts,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # bounds may be met
            process.fit(self.task.x[:, None], self.task.y)
        mean, sd = process.predict(self.task.places.x[:, None], return_std=True)
        variance = float(process.kernel_.k2.noise_level)
        own = np.sqrt(np.maximum(sd**2 - variance, _EXACT))
        return self.task.places.points(self.keys[0], mean, own, math.sqrt(variance))


SQUARED_EXPONENTIAL = "squared exponential"
RELU_KERNEL, ERF_KERNEL = "ReLU net of 4 hidden layers", "erf net of 4 hidden layers"
_UNITS = {RELU_KERNEL: "relu", ERF_KERNEL: "erf"}


def covariance(name: str) -> Kernel:
    """A covariance function with hyper-parameters to begin with.

    Parameters
    ----------
    name : str
        That of the paper's comparison, or that of a net of infinite width; erf stands
        for tanh, from which it hardly differs, because its kernel has a closed form.

    Returns
    -------
    Kernel
    """
    if name == SQUARED_EXPONENTIAL:
        return ConstantKernel(1.0) * RBF(1.0, (1e-2, 1e2))
    unit = _UNITS[name]
    layers = (unit, unit, unit, unit, "identity")
    return NetworkKernel(layers, weight_variance=2.0, bias_variance=0.5)


def run_jobs(
    path: Path,
    jobs: Sequence[Job],
    *,
    n_workers: int | None = None,
    progress: bool | None = None,
) -> list[Point]:
    """The points of all jobs; those whose curves are in the file are not run.

    Parameters
    ----------
    path : Path
        CSV file of points, rewritten after every job.
    jobs : sequence of Job
        The longest first.
    n_workers : int, optional
        Processes, by default one per core.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    list of Point
    """
    stored = read_records(path, Point)
    known = {
        key: [p for p in stored if p.curve == key] for job in jobs for key in job.keys
    }
    missing = [job for job in jobs if not all(known[key] for key in job.keys)]
    with ProgressBar(f"{path.stem}: models", len(missing), progress) as bar:
        for points in spread(_points_of, missing, n_workers):
            known |= {key: [] for key in {p.curve for p in points}}
            for point in points:
                known[point.curve].append(point)
            write_records(path, [p for own in known.values() for p in own])
            bar.advance()
    return [p for own in known.values() for p in own]


def untrained(job: NetJob) -> NetJob:
    """The same net with its first weights."""
    return replace(job, net=replace(job.net, n_steps=0), n_draws=job.n_draws // 10)


def _points_of(job: Job) -> list[Point]:
    return job.points()


def _doubles(outputs: Tensor) -> Array:
    return outputs[..., 0].double().numpy()
