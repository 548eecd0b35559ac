"""The models of a series, each a job: train or fit, then ask."""

import math
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Kernel, WhiteKernel
from torch import Tensor

from caveat.papers.series.nets import Training, train
from caveat.papers.series.points import (
    FEW_DRAWS,
    MC,
    PROCESS,
    STANDARD,
    Array,
    Key,
    Places,
    Point,
)
from caveat.sampling import MCDropout
from caveat.theory import NetworkKernel

RELU_5, RELU_4 = "ReLU 5 layers drop 0.1", "ReLU 4 layers drop 0.1"
TANH_5 = "tanh 5 layers drop 0.1"
SQUARED_EXPONENTIAL = "squared exponential"
RELU_KERNEL, ERF_KERNEL = "ReLU net of 4 hidden layers", "erf net of 4 hidden layers"
KERNELS = (SQUARED_EXPONENTIAL, RELU_KERNEL, ERF_KERNEL)
_EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class SeriesTask:
    """A series: training data, and where to predict (some of it is ``"train"``)."""

    x: Array
    y: Array
    places: Places


class Model(ABC):
    """A model to train or to fit, and the curves it gives."""

    @property
    @abstractmethod
    def curves(self) -> list[Key]:
        """What tells its curves apart."""

    @abstractmethod
    def points(self, task: SeriesTask, folder: Path) -> list[Point]:
        """All points of its curves; nets are kept in the folder."""


@dataclass(frozen=True)
class NetModel(Model):
    """A dropout net: MC dropout with few and with many draws, standard dropout."""

    net: Training
    n_draws: int

    @property
    def untrained(self) -> "NetModel":
        """The same net with its first weights, and fewer draws."""
        return NetModel(replace(self.net, n_steps=0), self.n_draws // 10)

    @property
    def curves(self) -> list[Key]:
        name, n_steps = self.net.name, self.net.n_steps
        counts = (FEW_DRAWS, self.n_draws) if n_steps else (self.n_draws,)
        return [(name, STANDARD, n_steps, 0), *((name, MC, n_steps, n) for n in counts)]

    def points(self, task: SeriesTask, folder: Path) -> list[Point]:
        file = (
            folder / f"{self.net.name.replace(',', '').replace(' ', '_')}.safetensors"
        )
        module = train(self.net, task.x, task.y, file)
        x = torch.from_numpy(task.places.x.astype(np.float32))[:, None]
        with torch.no_grad():
            standard = _doubles(module(x))
        draws = _doubles(MCDropout(module, seed=0).draws(x, n_draws=self.n_draws))
        first, *others = self.curves
        found = task.places.points(first, standard, math.nan, math.nan)
        for key in others:
            found += _drawn(task.places, key, draws[: key[-1]])
        return found


def _drawn(places: Places, key: Key, draws: Array) -> list[Point]:
    """Mean and sd of draws (draws, places); the noise that the bound is best at."""
    known = np.array([part == "train" for part in places.part])
    noise = math.sqrt(np.square(draws[:, known] - places.y[known]).mean())
    return places.points(key, draws.mean(0), draws.std(0), noise)


@dataclass(frozen=True)
class ProcessModel(Model):
    """A Gaussian process, its hyper-parameters by marginal likelihood."""

    name: str
    n_restarts: int

    @property
    def curves(self) -> list[Key]:
        return [(self.name, PROCESS, 0, 0)]

    def points(self, task: SeriesTask, folder: Path) -> list[Point]:
        process = GaussianProcessRegressor(
            covariance(self.name) + WhiteKernel(0.1, (1e-6, 1e1)),
            n_restarts_optimizer=self.n_restarts,
            random_state=0,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # bounds may be met
            process.fit(task.x[:, None], task.y)
        mean, sd = process.predict(task.places.x[:, None], return_std=True)
        variance = float(process.kernel_.k2.noise_level)
        own = np.sqrt(np.maximum(sd**2 - variance, _EXACT))
        return task.places.points(self.curves[0], mean, own, math.sqrt(variance))


def covariance(name: str) -> Kernel:
    """One of ``KERNELS`` with hyper-parameters to begin with.

    That of the paper's comparison, or that of a net of infinite width; erf stands for
    tanh, from which it hardly differs, because its kernel has a closed form.
    """
    if name == SQUARED_EXPONENTIAL:
        return ConstantKernel(1.0) * RBF(1.0, (1e-2, 1e2))
    unit = {RELU_KERNEL: "relu", ERF_KERNEL: "erf"}[name]
    layers = (*[unit] * 4, "identity")
    return NetworkKernel(layers, weight_variance=2.0, bias_variance=0.5)


def _doubles(outputs: Tensor) -> Array:
    return outputs[..., 0].double().numpy()
