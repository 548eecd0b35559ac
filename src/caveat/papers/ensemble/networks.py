"""Perceptrons on the images, trained by the fleet of ``caveat.training``."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn

from caveat.papers.lenet import Images, Labelled
from caveat.papers.lenet.images import SCALE
from caveat.training import (
    Member,
    NetworkSpec,
    Rows,
    Schedule,
    SoftmaxCrossEntropy,
    train,
)

HIDDEN = (200, 200)
BATCH_SIZE = 128
LEARNING_RATE = 1e-3


@dataclass(frozen=True)
class Kind:
    """What is chosen on held-out images."""

    drop_rates: tuple[float, float, float]  # of each layer's input; plain: all 0
    l2_penalty: float  # lambda in (mean loss) + lambda |W|²

    def __str__(self) -> str:
        if any(self.drop_rates):
            return f"drop rates {', '.join(f'{r:g}' for r in self.drop_rates)}"
        return f"λ = {self.l2_penalty:g}"


@dataclass(frozen=True)
class Perceptron:
    """A perceptron to be trained: a job of ``caveat.papers.lenet.NetStore``."""

    kind: Kind
    epochs: int
    seed: int
    n_train: int | None = None  # how many of the training images; None for all

    @property
    def name(self) -> str:
        """For the file of the network."""
        rates = "-".join(f"{rate:g}" for rate in self.kind.drop_rates)
        rows = self.n_train or "all"
        return f"mlp_{rates}_{self.kind.l2_penalty:g}_{self.epochs}_{rows}_{self.seed}"

    @property
    def settings(self) -> dict[str, Any]:
        """All that the network depends on, beside the images."""
        shared = {"hidden": HIDDEN, "batch": BATCH_SIZE, "rate": LEARNING_RATE}
        return {**asdict(self), **shared}

    def build(self) -> nn.Sequential:
        """The network before training, its noise where the fleet has it."""
        widths = (28 * 28, *HIDDEN, 10)
        modules: list[nn.Module] = [nn.Flatten()]
        for place, rate in enumerate(self.kind.drop_rates):
            modules += [nn.ReLU()] if place else []
            modules += [nn.Dropout(rate)] if rate else []
            size = widths[place], widths[place + 1]
            modules.append(nn.utils.skip_init(nn.Linear, *size))
        return nn.Sequential(*modules).eval()

    def train(self, images: Images) -> nn.Sequential:
        """The network after training, in evaluation mode."""
        rows = as_rows(images.train.first(self.n_train))
        found = train([self._member()], [rows], n_threads=1).network(0)
        net = self.build()
        with torch.no_grad():
            for own, value in zip(net.parameters(), found.parameters(), strict=True):
                own.copy_(value)
        return net

    def _member(self) -> Member:
        penalties = (self.kind.l2_penalty,) * (len(HIDDEN) + 1)
        return Member(self.name, self._spec(), penalties, seed=self.seed)

    def _spec(self) -> NetworkSpec:
        on_features, *hidden = self.kind.drop_rates
        (rate,) = set(hidden)
        return NetworkSpec(
            HIDDEN,
            drop_rate=rate,
            input_drop_rate=on_features,
            objective=SoftmaxCrossEntropy(10),
            schedule=Schedule(self.epochs, BATCH_SIZE, LEARNING_RATE, keep_last=True),
        )


def as_rows(data: Labelled) -> Rows:
    """Images as rows of pixels, scaled as for LeNet."""
    x = data.image.flatten(1).float().mul_(SCALE)
    return Rows(x, data.label[:, None].float())
