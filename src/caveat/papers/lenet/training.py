"""Training as Caffe does it: momentum, a slowly falling rate, biases twice as fast."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from caveat.papers.lenet.images import Images, Labelled, as_input
from caveat.papers.lenet.network import make_lenet
from caveat.training.schedules import inverse_decay

_LEVELS = 65536  # a drop rate is rounded to a multiple of 1/65536


@dataclass(frozen=True)
class Solver:
    """The released settings of all LeNets of the papers."""

    base_rate: float = 0.01  # the learning rate is base (1 + gamma step)^-power
    gamma: float = 1e-4
    power: float = 0.75
    momentum: float = 0.9
    weight_decay: float = 5e-4  # the gradient of the decay is so many times the weight
    bias_rate: float = 2.0  # how much faster biases learn than weights
    batch_size: int = 64

    def __str__(self) -> str:
        rate = f"{self.base_rate} (1 + {self.gamma:g} step)^-{self.power}"
        speeds = f"momentum {self.momentum}, decay {self.weight_decay:g}"
        return f"batch {self.batch_size}, rate {rate}, {speeds}"


SOLVER = Solver()


@dataclass(frozen=True)
class NetJob:
    """A LeNet to be trained.

    The seed is that of weights, order of images and masks; the first two do not depend
    on where the dropout is.
    """

    dropout: str  # one of ``DROPOUT``
    n_steps: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.dropout}_{self.n_steps}_{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        return {**asdict(self), **asdict(SOLVER)}

    def build(self) -> nn.Sequential:
        return make_lenet(self.dropout, self._generator(0))

    def train(self, images: Images) -> nn.Sequential:
        net, order, noise = self.build(), self._generator(1), self._generator(2)
        descend(net, images.train, n_steps=self.n_steps, order=order, noise=noise)
        return net

    def _generator(self, purpose: int) -> torch.Generator:
        return torch.Generator().manual_seed(3 * self.seed + purpose)


def descend(
    net: nn.Sequential,
    data: Labelled,
    *,
    n_steps: int,
    order: torch.Generator,
    noise: torch.Generator,
    solver: Solver = SOLVER,
) -> None:
    """Train a network in place; ``order`` is for images, ``noise`` for masks."""
    optimiser = _optimiser(net, solver)
    batches = islice(_batches(data, order, solver.batch_size), n_steps)
    for step, (image, label) in enumerate(batches):
        _set_rate(optimiser, solver, step)
        optimiser.zero_grad()
        F.cross_entropy(noisy_pass(net, image, noise), label).backward()
        optimiser.step()


def noisy_pass(net: nn.Sequential, x: Tensor, noise: torch.Generator) -> Tensor:
    """The output of a network with dropout on, masks from a generator of its own."""
    for layer in net:
        x = _dropped(x, layer.p, noise) if isinstance(layer, nn.Dropout) else layer(x)
    return x


def _dropped(x: Tensor, rate: float, noise: torch.Generator) -> Tensor:
    """Inverted dropout from 16 random bits an element: faster than torch's own."""
    level = round(rate * _LEVELS)
    bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64)
    bits.random_(-(2**63), None, generator=noise)
    keep = bits.view(torch.int16)[: x.numel()].ge(level - _LEVELS // 2).to(x.dtype)
    mask = keep.as_strided(x.shape, x.stride())  # x is dense, in some order of axes
    return x * mask.mul_(_LEVELS / (_LEVELS - level))


def _optimiser(net: nn.Sequential, solver: Solver) -> torch.optim.SGD:
    speeds = (1.0, solver.bias_rate)
    groups: list[dict[str, Any]] = [{"params": [], "speed": s} for s in speeds]
    for name, parameter in net.named_parameters():
        groups[name.endswith("bias")]["params"].append(parameter)
    return torch.optim.SGD(
        groups,
        lr=solver.base_rate,
        momentum=solver.momentum,
        weight_decay=solver.weight_decay,
        foreach=True,
    )


def _set_rate(optimiser: torch.optim.SGD, solver: Solver, step: int) -> None:
    rate = inverse_decay(step, solver.base_rate, gamma=solver.gamma, power=solver.power)
    for group in optimiser.param_groups:
        group["lr"] = rate * group["speed"]


def _batches(
    data: Labelled, order: torch.Generator, size: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of all images in a new order for each epoch, for ever."""
    while True:
        for rows in torch.randperm(len(data), generator=order).split(size):
            yield as_input(data.image[rows]), data.label[rows]
