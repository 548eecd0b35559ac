"""A small training loop."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from caveat._progress import ProgressBar

Loss = Callable[[Tensor, Tensor], Tensor]


@contextmanager
def own_randomness(seed: int) -> Iterator[None]:
    """Seeded torch randomness inside the block; outside it goes on as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def half_squared_error(predicted: Tensor, observed: Tensor) -> Tensor:
    """The loss of paper 001, averaged over rows: its scale fixes what tau means."""
    return 0.5 * (predicted - observed).square().sum(-1).mean()


def fit(
    model: nn.Module,
    groups: list[dict[str, Any]],
    loss: Loss,
    data: tuple[Tensor, Tensor],
    *,
    n_steps: int,
    learning_rate: float = 1e-3,
    batch_size: int = 64,
    what: str = "training",
) -> None:
    """Train by Adam on random mini-batches, the learning rate falling to zero.

    Leaves the model in eval mode. Randomness is torch's own: see ``own_randomness``.
    """
    inputs, targets = data
    optimiser = torch.optim.Adam(groups, lr=learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_steps)
    model.train()
    with ProgressBar(what, n_steps, None) as bar:
        for _ in range(n_steps):
            rows = torch.randperm(len(inputs))[:batch_size]
            optimiser.zero_grad()
            loss(model(inputs[rows]), targets[rows]).backward()
            optimiser.step()
            schedule.step()
            bar.advance()
    model.eval()
