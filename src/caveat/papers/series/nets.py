"""The dropout nets of paper 001 for series, trained as their released files say.

What any training of a net here has, is kept in files and is gone on with, is a
:class:`Training`; the one below is the released one.

Stochastic gradient descent as in Caffe: momentum 0.9, the rate falling by the ``inv``
policy, twice the rate for biases, weights uniform of variance 1/fan-in and biases 0.
Dropout is on the units of every hidden layer, none on the input. A batch takes the
next rows in their order, and begins again at the first after the last.
"""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from caveat.training import NetworkSpec
from caveat.training.members import Architecture
from caveat.training.networks import network, of_one
from caveat.training.objectives import SquaredError
from caveat.training.schedules import inverse_decay
from caveat.training.stack import Layers, Stack, Workspace, layers
from caveat.training.streams import DropFactors, generator

Array = NDArray[np.float64]

MOMENTUM = 0.9
BIAS_RATE = 2.0  # times the rate of the weights
RELEASED_STEPS = 1_000_000
_SAVED_EVERY = 500  # steps
WEIGHTS, NOISE, ORDER = range(3)  # what random numbers are for


@dataclass(frozen=True, eq=False)
class NetState:
    """Where a training is: all parameters as one row, its moments, steps done."""

    parameters: Tensor
    moments: Mapping[str, Tensor]
    step: int = 0

    @classmethod
    def first(cls, parameters: Tensor, *moments: str) -> "NetState":
        """Of a training that begins: moments are zero."""
        return cls(parameters, {name: torch.zeros_like(parameters) for name in moments})


@dataclass(frozen=True)
class Training(ABC):
    """A net and its training.

    Attributes
    ----------
    name : str
        Also of its file.
    activation : str
    n_hidden : int
        Hidden layers; the paper's count of layers is one more.
    drop_rate : float
        Of the units of every hidden layer.
    rate : float
        The learning rate to begin with.
    """

    name: str
    activation: str
    n_hidden: int
    drop_rate: float
    rate: float
    _: KW_ONLY
    batch_size: int
    n_steps: int
    width: int = 1024

    @property
    def spec(self) -> NetworkSpec:
        """The same in the words of a fleet, whose layers it is made of."""
        hidden = (self.width,) * self.n_hidden
        return NetworkSpec(hidden, activation=self.activation, drop_rate=self.drop_rate)

    @property
    def architecture(self) -> Architecture:
        """One input, one output."""
        return Architecture.of(self.spec, 1, 1)

    def module(self, parameters: Tensor) -> nn.Sequential:
        """The net as an ordinary module, in evaluation mode."""
        return network(self.spec, of_one(parameters, self.architecture))

    def identity(self) -> dict[str, object]:
        """What makes a training another one."""
        return asdict(self)

    @abstractmethod
    def first(self, rows: Tensor) -> NetState:
        """The first weights, for rows (x, y)."""

    @abstractmethod
    def steps(self, state: NetState, rows: Tensor) -> Iterator[int]:
        """Go on with a state, in place, and say how many steps are done after each."""


@torch.no_grad()
def advance(net: Training, state: NetState, rows: Tensor) -> Iterator[NetState]:
    """Train on rows (x, y), in place; yields every 500 steps and at the end."""
    for done in net.steps(state, rows):
        if done % _SAVED_EVERY == 0 or done == net.n_steps:
            yield NetState(state.parameters, state.moments, done)


class Gradients:
    """Gradients of batches with dropout, the noise of a step by its number."""

    def __init__(self, net: Training, parameters: Tensor) -> None:
        architecture = net.architecture
        self._n_rows = net.batch_size
        self._noise = DropFactors([net.spec.drop_rates], architecture.fan_ins)
        self._stack = Stack(architecture, SquaredError())
        self._work = Workspace(architecture, 1, net.batch_size)
        self._share = torch.full((1, net.batch_size, 1), 1.0 / net.batch_size)
        self.flat = torch.empty_like(parameters)
        self._own = layers(parameters, architecture)
        self.layers = layers(self.flat, architecture)

    def at(self, step: int, rows: Tensor, places: Tensor) -> Tensor:
        """That of half the mean squared error of the rows at these places."""
        self._work.load(rows, places[None], self._share)
        raw = self._noise.raw(generator(0, NOISE, step), 1, self._n_rows)
        factors = self._noise.factors(torch.from_numpy(raw), self._n_rows)
        self._stack.gradient(self._own, self.layers, self._work, factors)
        return self.flat


@dataclass(frozen=True)
class Net(Training):
    """As released: rate (1 + gamma step)^-power, momentum, batches in order."""

    weight_decay: float = 0.0  # times weights and biases it is added to the gradient
    gamma: float = 1e-4
    power: float = 0.25

    def identity(self) -> dict[str, object]:
        """Its length does not: it can be gone on with."""
        return super().identity() | {"n_steps": None}

    def first(self, rows: Tensor) -> NetState:
        """Weights uniform in ±sqrt(3/fan-in) (Caffe's ``xavier``), the rest zero."""
        rng = generator(0, WEIGHTS)
        parameters = torch.zeros(1, self.architecture.n_parameters)
        for weight, _ in layers(parameters, self.architecture):
            limit = math.sqrt(3.0 / weight.shape[1])
            drawn = rng.uniform(-limit, limit, weight.shape[1:])
            weight.copy_(torch.from_numpy(drawn))
        return NetState.first(parameters, "velocity")

    def steps(self, state: NetState, rows: Tensor) -> Iterator[int]:
        """Gradient descent as in Caffe."""
        velocity = state.moments["velocity"]
        moving = layers(velocity, self.architecture)
        gradients = Gradients(self, state.parameters)
        for step in range(state.step, self.n_steps):
            places = torch.arange(self.batch_size) + step * self.batch_size
            gradient = gradients.at(step, rows, places % len(rows))
            gradient.add_(state.parameters, alpha=self.weight_decay)
            rate = inverse_decay(step, self.rate, gamma=self.gamma, power=self.power)
            velocity.mul_(MOMENTUM).add_(gradient, alpha=rate)
            _add_to_biases(moving, gradients.layers, (BIAS_RATE - 1.0) * rate)
            state.parameters.sub_(velocity)
            yield step + 1


def train(net: Training, x: Array, y: Array, path: Path) -> nn.Sequential:
    """Train a net, or go on with it, and keep it in a file.

    Parameters
    ----------
    net : Training
        With its number of steps.
    x, y : array, shape (rows,)
        Standardised.
    path : Path
        Of a safetensors file with weights and moments, rewritten every 500 steps.
        What it holds of the same training, on the same rows, is not done again.
    """
    rows = torch.from_numpy(np.stack([x, y], 1).astype(np.float32))
    identity = _identity(net, rows)
    state = _load(path, identity, net.n_steps) or net.first(rows)
    for reached in advance(net, state, rows):
        _save(path, identity, reached)
        state = reached
    return net.module(state.parameters)


def _add_to_biases(velocity: Layers, gradient: Layers, rate: float) -> None:
    for (_, moving), (_, slope) in zip(velocity, gradient, strict=True):
        moving.add_(slope, alpha=rate)


def _identity(net: Training, rows: Tensor) -> str:
    """What makes a training another one, in a line."""
    data = hashlib.sha256(rows.numpy().tobytes()).hexdigest()
    return json.dumps(net.identity() | {"rows": data})


def _load(path: Path, identity: str, n_steps: int) -> NetState | None:
    """The state in a file, if it is of this training and not beyond its end."""
    if not path.exists():
        return None
    with safe_open(path, "pt") as file:
        told = file.metadata() or {}
    step = int(told.get("step", n_steps + 1))
    if told.get("training") != identity or step > n_steps:
        return None
    tensors = load_file(path)
    return NetState(tensors.pop("parameters"), tensors, step)


def _save(path: Path, identity: str, state: NetState) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    save_file(
        {"parameters": state.parameters, **state.moments},
        draft,
        {"training": identity, "step": str(state.step)},
    )
    draft.replace(path)
