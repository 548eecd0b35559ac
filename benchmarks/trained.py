"""Small networks with dropout, trained on data made or shipped with scikit-learn."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from sklearn.datasets import load_digits, make_friedman1
from torch import Tensor, nn

STEPS, BATCH, RATE = 1500, 64, 3e-3


@dataclass(frozen=True)
class Trained:
    """A network, and rows that it was not trained on.

    Attributes
    ----------
    labels : Tensor or None
        Classes of the rows, if it is a classifier.
    """

    name: str
    model: nn.Module
    x: Tensor
    labels: Tensor | None = None


def mlp(sizes: list[int], unit: type[nn.Module], drop_rate: float) -> nn.Sequential:
    """Dropout before every weight layer but the first."""
    layers: list[nn.Module] = []
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        layers += [unit(), nn.Dropout(drop_rate)] if number else []
        layers.append(nn.Linear(inputs, outputs))
    return nn.Sequential(*layers)


def curve(unit: type[nn.Module], steps: int) -> Trained:
    """1-100-100-1 on a noisy sine, asked between and beyond its data."""
    x = torch.linspace(-1.0, 1.0, 200)[:, None]
    y = torch.sin(4.0 * x) + 0.1 * _normal(x.shape)
    model = _fitted(lambda: mlp([1, 100, 100, 1], unit, 0.1), x, y, steps)
    name = f"curve 1-100-100-1, {unit.__name__}, dropout 0.1"
    return Trained(name, model, torch.linspace(-2.0, 2.0, 401)[:, None])


def table(steps: int) -> Trained:
    """10-50-1 on Friedman's function, dropout on its inputs as well."""
    x, y = (torch.tensor(a, dtype=torch.float32) for a in _friedman(2000))
    y = (y - y.mean()) / y.std()
    model = _fitted(
        lambda: nn.Sequential(nn.Dropout(0.05), *mlp([10, 50, 1], nn.ReLU, 0.05)),
        x[:1500],
        y[:1500, None],
        steps,
    )
    return Trained("table 10-50-1, dropout 0.05, inputs too", model, x[1500:])


def digits(steps: int) -> Trained:
    """A small convolutional network on 8x8 digits, dropout before all but the first."""
    images, labels = load_digits(return_X_y=True)
    x = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16.0
    y = torch.tensor(labels)
    model = _fitted(_digits_net, x[:1200], y[:1200], steps)
    name = "digits, 2 convolutions, max pooling, dropout 0.25, 0.5"
    return Trained(name, model, x[1200:], y[1200:])


def _digits_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Dropout(0.25),
        nn.Conv2d(16, 32, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(512, 64),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(64, 10),
    )


def _fitted(
    build: Callable[[], nn.Module], x: Tensor, y: Tensor, steps: int
) -> nn.Module:
    loss = nn.CrossEntropyLoss() if y.dtype == torch.int64 else nn.MSELoss()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = build().train()
        optimiser = torch.optim.Adam(model.parameters(), lr=RATE, weight_decay=1e-5)
        for _ in range(steps):
            rows = torch.randint(len(x), (BATCH,))
            optimiser.zero_grad()
            loss(model(x[rows]), y[rows]).backward()
            optimiser.step()
    return model.eval()


def _friedman(rows: int) -> tuple[Tensor, Tensor]:
    found: tuple[Tensor, Tensor] = make_friedman1(rows, noise=1.0, random_state=0)
    return found


def _normal(shape: torch.Size) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))
