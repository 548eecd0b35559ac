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
    """What is chosen on held-out images.

    Attributes
    ----------
    drop_rates : tuple of float
        Of the input of each weight layer; all 0 for a plain network.
    l2_penalty : float
        lambda in (mean loss) + lambda |W|².
    """

    drop_rates: tuple[float, float, float]
    l2_penalty: float

    @property
    def has_dropout(self) -> bool:
        """Whether anything is dropped."""
        return any(self.drop_rates)

    def __str__(self) -> str:
        if self.has_dropout:
            return f"drop rates {', '.join(f'{r:g}' for r in self.drop_rates)}"
        return f"λ = {self.l2_penalty:g}"


@dataclass(frozen=True)
class Perceptron:
    """A perceptron to be trained: a job of ``caveat.papers.lenet.Store``.

    Attributes
    ----------
    kind : Kind
    epochs : int
    seed : int
    n_train : int or None
        How many of the training images it learns from; None for all.
    """

    kind: Kind
    epochs: int
    seed: int
    n_train: int | None = None

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
        """The network before training, in evaluation mode."""
        return _on_images([28 * 28, *HIDDEN, 10], self.kind.drop_rates)

    def train(self, images: Images) -> nn.Sequential:
        """The network after training, in evaluation mode."""
        rows = as_rows(images.train.first(self.n_train))
        trained = train([self._member()], [rows], n_threads=1)
        net = self.build()
        with torch.no_grad():
            for own, found in zip(
                net.parameters(), trained.network(0).parameters(), strict=True
            ):
                own.copy_(found)
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


def _on_images(widths: list[int], drop_rates: tuple[float, ...]) -> nn.Sequential:
    """An untrained network with its noise where the fleet has it."""
    modules: list[nn.Module] = [nn.Flatten()]
    for place, rate in enumerate(drop_rates):
        modules += [nn.ReLU()] if place else []
        modules += [nn.Dropout(rate)] if rate else []
        modules.append(nn.utils.skip_init(nn.Linear, widths[place], widths[place + 1]))
    return nn.Sequential(*modules).eval()
