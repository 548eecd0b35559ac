"""The dropout nets of paper 001 for series, trained as their released files say.

Stochastic gradient descent as in Caffe: momentum 0.9, the rate falling by the ``inv``
policy, twice the rate for biases, weights uniform of variance 1/fan-in and biases 0.
Dropout is on the units of every hidden layer, none on the input. A batch takes the
next rows in their order, and begins again at the first after the last.
"""

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
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
_WEIGHTS, _NOISE = range(2)


@dataclass(frozen=True)
class Net:
    """A net and its training."""

    name: str  # also of its file
    activation: str
    n_hidden: int  # hidden layers; the paper's count of layers is one more
    drop_rate: float  # of the units of every hidden layer
    rate: float  # the learning rate is rate (1 + gamma step)^-power
    weight_decay: float  # times weights and biases it is added to the gradient
    batch_size: int
    n_steps: int
    gamma: float = 1e-4
    power: float = 0.25
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


@dataclass(frozen=True, eq=False)
class NetState:
    """Where a training is: all parameters as one row, their velocity, steps done."""

    parameters: Tensor
    velocity: Tensor
    step: int = 0

    @classmethod
    def first(cls, net: Net) -> "NetState":
        """Weights uniform in ±sqrt(3/fan-in) (Caffe's ``xavier``), the rest zero."""
        rng = generator(0, _WEIGHTS)
        parameters = torch.zeros(1, net.architecture.n_parameters)
        for weight, _ in layers(parameters, net.architecture):
            limit = math.sqrt(3.0 / weight.shape[1])
            drawn = rng.uniform(-limit, limit, weight.shape[1:])
            weight.copy_(torch.from_numpy(drawn))
        return cls(parameters, torch.zeros_like(parameters))


def train(net: Net, x: Array, y: Array, path: Path) -> nn.Sequential:
    """Train a net, or go on with it, and keep it in a file.

    Parameters
    ----------
    net : Net
        With its number of steps.
    x, y : array, shape (rows,)
        Standardised.
    path : Path
        Of a safetensors file with weights and velocity, rewritten every 500 steps.
        What it holds of the same training, on the same rows, is not done again.
    """
    rows = torch.from_numpy(np.stack([x, y], 1).astype(np.float32))
    identity = _identity(net, rows)
    state = _load(path, identity, net.n_steps) or NetState.first(net)
    for reached in advance(net, state, rows):
        _save(path, identity, reached)
        state = reached
    return net.module(state.parameters)


@torch.no_grad()
def advance(net: Net, state: NetState, rows: Tensor) -> Iterator[NetState]:
    """Train on rows (x, y), in place; yields every 500 steps and at the end."""
    architecture = net.architecture
    noise = DropFactors([net.spec.drop_rates], architecture.fan_ins)
    stack = Stack(architecture, SquaredError())
    work = Workspace(architecture, 1, net.batch_size)
    share = torch.full((1, net.batch_size, 1), 1.0 / net.batch_size)
    gradient = torch.empty_like(state.parameters)
    own, into, velocity = (
        layers(flat, architecture)
        for flat in (state.parameters, gradient, state.velocity)
    )
    for step in range(state.step, net.n_steps):
        places = (torch.arange(net.batch_size) + step * net.batch_size) % len(rows)
        work.load(rows, places[None], share)
        raw = noise.raw(generator(0, _NOISE, step), 1, net.batch_size)
        factors = noise.factors(torch.from_numpy(raw), net.batch_size)
        stack.gradient(own, into, work, factors)
        gradient.add_(state.parameters, alpha=net.weight_decay)
        rate = inverse_decay(step, net.rate, gamma=net.gamma, power=net.power)
        state.velocity.mul_(MOMENTUM).add_(gradient, alpha=rate)
        _add_to_biases(velocity, into, (BIAS_RATE - 1.0) * rate)
        state.parameters.sub_(state.velocity)
        if (step + 1) % _SAVED_EVERY == 0 or step + 1 == net.n_steps:
            yield NetState(state.parameters, state.velocity, step + 1)


def _add_to_biases(velocity: Layers, gradient: Layers, rate: float) -> None:
    for (_, moving), (_, slope) in zip(velocity, gradient, strict=True):
        moving.add_(slope, alpha=rate)


def _identity(net: Net, rows: Tensor) -> str:
    """What makes a training another one, other than its length."""
    data = hashlib.sha256(rows.numpy().tobytes()).hexdigest()
    return json.dumps(asdict(net) | {"n_steps": None, "rows": data})


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
    return NetState(tensors["parameters"], tensors["velocity"], step)


def _save(path: Path, identity: str, state: NetState) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    save_file(
        {"parameters": state.parameters, "velocity": state.velocity},
        draft,
        {"training": identity, "step": str(state.step)},
    )
    draft.replace(path)
