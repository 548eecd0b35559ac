"""A small training loop, and the weight decay that belongs to a prior."""

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


def decay_groups(
    model: nn.Sequential,
    *,
    lengthscale: float,
    precision: float,
    n_train: int,
) -> list[dict[str, Any]]:
    """Optimiser groups whose weight decay is the prior of paper 001, eq. 12.

    For half squared errors (or, with precision 1, cross entropy) averaged over rows.
    The optimiser's gradient ``weight_decay * W`` is that of (weight_decay / 2) |W|².
    Torch scales masks by 1/keep_prob, so W here is keep_prob times the papers' M.

    Parameters
    ----------
    model : nn.Sequential
        Each layer of weights sees the dropout between it and the one before.
    lengthscale, precision : float
        l and tau, the latter in the units the model is trained in.
    n_train : int
        N, the number of training rows.

    Returns
    -------
    list of dict
        For an optimiser with a coupled decay (SGD, Adam; not AdamW).
    """
    # B9: keep l²/2 |M|² + l²/2 |m|², over tau N; with W = keep M: l²/keep |W|²
    unit = lengthscale**2 / (n_train * precision)
    groups: list[dict[str, Any]] = []
    keep_prob = 1.0
    for layer in model:
        if isinstance(layer, nn.Dropout):
            keep_prob = 1.0 - layer.p
        elif isinstance(layer, nn.Linear | nn.Conv2d):
            groups.append({"params": [layer.weight], "weight_decay": unit / keep_prob})
            groups.append({"params": [layer.bias], "weight_decay": unit})
            keep_prob = 1.0
    return groups


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
