"""A small training loop for chains, all of its randomness from one generator."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from caveat._progress import ProgressBar
from caveat.theory.chains import in_order

Layer = nn.Linear | nn.Conv2d
Loss = Callable[[Tensor, Tensor], Tensor]

_BATCH = 64


def half_squared_error(predicted: Tensor, observed: Tensor) -> Tensor:
    """The loss of paper 001, averaged over rows: its scale fixes what tau means."""
    return 0.5 * (predicted - observed).square().sum(-1).mean()


@torch.no_grad()
def layer(kind: type[Layer], *sizes: int, generator: torch.Generator) -> Layer:
    """A layer with torch's own first weights, but from a generator that is given."""
    made = skip_init(kind, *sizes)
    limit = 1 / math.sqrt(made.weight[0].numel())
    made.weight.uniform_(-limit, limit, generator=generator)
    made.bias.uniform_(-limit, limit, generator=generator)
    return made


def noisy_pass(model: nn.Sequential, x: Tensor, generator: torch.Generator) -> Tensor:
    """A pass with dropout on, as in training mode, but no mode is changed."""
    for module in in_order(model):
        if isinstance(module, nn.Dropout):
            kept = torch.empty_like(x).bernoulli_(1 - module.p, generator=generator)
            x = x * kept.div_(1 - module.p)
        else:
            x = module(x)
    return x


def fit(
    model: nn.Sequential,
    groups: list[dict[str, Any]],
    loss: Loss,
    data: tuple[Tensor, Tensor],
    *,
    generator: torch.Generator,
    n_steps: int,
    learning_rate: float = 1e-3,
    what: str = "training",
) -> None:
    """Train by Adam on random batches of 64, the learning rate falling to zero.

    The model stays in the mode it is in; the generator orders the rows and drops units.
    """
    inputs, targets = data
    optimiser = torch.optim.Adam(groups, lr=learning_rate, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, n_steps)
    with ProgressBar(what, n_steps, True) as bar:  # as lines where is no terminal
        for _ in range(n_steps):
            rows = torch.randperm(len(inputs), generator=generator)[:_BATCH]
            optimiser.zero_grad()
            outputs = noisy_pass(model, inputs[rows], generator)
            loss(outputs, targets[rows]).backward()
            optimiser.step()
            schedule.step()
            bar.advance()
