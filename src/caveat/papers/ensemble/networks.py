"""The networks that are compared: perceptrons of the fleet, and the papers' LeNet."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from caveat.papers.lenet import SOLVER, Images, Labelled, descend, lenet_with
from caveat.papers.lenet.images import SCALE
from caveat.training import (
    Member,
    NetworkSpec,
    Rows,
    Schedule,
    SoftmaxCrossEntropy,
    train,
)

MLP, LENET = "MLP", "LeNet"
HIDDEN = (200, 200)
BATCH_SIZE = 128
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Kind:
    """What is chosen on held-out images.

    Attributes
    ----------
    network : str
        ``MLP`` or ``LENET``.
    early_rate : float
        MLP: the drop rate of pixels. LeNet: behind both convolutions.
    late_rate : float
        MLP: of the units of both hidden layers. LeNet: of its 500 units.
    l2_penalty : float
        Lambda in (mean loss) + lambda |W|²; Caffe's decay is twice as large.
    """

    network: str
    early_rate: float
    late_rate: float
    l2_penalty: float

    @property
    def is_plain(self) -> bool:
        """Whether it has no dropout."""
        return not (self.early_rate or self.late_rate)

    def __str__(self) -> str:
        penalty = f"λ = {self.l2_penalty:g}"
        if self.is_plain:
            return penalty
        return f"drop rates {self.early_rate:g} and {self.late_rate:g}, {penalty}"


@dataclass(frozen=True)
class NetworkJob:
    """A network to be trained."""

    kind: Kind
    length: int  # epochs of a perceptron, steps of a LeNet
    seed: int
    n_train: int | None = None  # how many of the training images; None for all

    def run(self, images: Images) -> nn.Sequential:
        """The network, in evaluation mode."""
        return _ROADS[self.kind.network](self, images.train.first(self.n_train))


def _perceptron(job: NetworkJob, data: Labelled) -> nn.Sequential:
    penalties = (job.kind.l2_penalty,) * (len(HIDDEN) + 1)
    member = Member("mlp", _spec(job), penalties, seed=job.seed)
    found = train([member], [as_rows(data)], n_threads=1).network(0)
    net = perceptron(job.kind)
    with torch.no_grad():
        for own, value in zip(net.parameters(), found.parameters(), strict=True):
            own.copy_(value)
    return net


def perceptron(kind: Kind) -> nn.Sequential:
    """A perceptron without its weights, its noise where the fleet has it."""
    widths = (28 * 28, *HIDDEN, 10)
    rates = (kind.early_rate, *[kind.late_rate] * len(HIDDEN))
    modules: list[nn.Module] = [nn.Flatten()]
    for place, rate in enumerate(rates):
        modules += [nn.ReLU()] if place else []
        modules += [nn.Dropout(rate)] if rate else []
        size = widths[place], widths[place + 1]
        modules.append(nn.utils.skip_init(nn.Linear, *size))
    return nn.Sequential(*modules).eval()


def _spec(job: NetworkJob) -> NetworkSpec:
    return NetworkSpec(
        HIDDEN,
        drop_rate=job.kind.late_rate,
        input_drop_rate=job.kind.early_rate,
        objective=SoftmaxCrossEntropy(10),
        schedule=Schedule(job.length, BATCH_SIZE, LEARNING_RATE, keep_last=True),
    )


def as_rows(data: Labelled) -> Rows:
    """Images as rows of pixels, scaled as for LeNet."""
    x = data.image.flatten(1).float().mul_(SCALE)
    return Rows(x, data.label[:, None].float())


def _lenet(job: NetworkJob, data: Labelled) -> nn.Sequential:
    weights, order, noise = (
        torch.Generator().manual_seed(3 * job.seed + purpose) for purpose in range(3)
    )
    net = lenet_with(job.kind.early_rate, job.kind.late_rate, weights)
    solver = replace(SOLVER, weight_decay=2.0 * job.kind.l2_penalty)
    descend(net, data, n_steps=job.length, order=order, noise=noise, solver=solver)
    return net


_ROADS: dict[str, Callable[[NetworkJob, Labelled], nn.Sequential]] = {
    MLP: _perceptron,
    LENET: _lenet,
}
