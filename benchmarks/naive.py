"""The loop that everyone writes: T passes, stacked, then mean and variance."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from benchmarks.tasks import Case, Moments


def dropout_modules_on(model: nn.Module) -> None:
    """Put the model in eval mode and its dropout modules in train mode."""
    model.eval()
    for module in model.modules():
        if isinstance(module, _DropoutNd):
            module.train()


def everything_on(model: nn.Module) -> None:
    """Put the whole model in train mode: right only without BatchNorm.

    Attention of Hugging Face reads its own flag, not that of a dropout module.
    """
    model.train()


def naive_draws(
    case: Case, read: Callable[[Any], Tensor], *, n_draws: int
) -> Tensor:  # shape: (draws, batch, *event)
    """Run a model that is switched on ``n_draws`` times and stack what comes out."""
    model, args, kwargs = case
    with torch.no_grad():
        return torch.stack([read(model(*args, **kwargs)) for _ in range(n_draws)])


def naive_moments(
    case: Case, read: Callable[[Any], Tensor], *, n_draws: int
) -> Moments:
    """Mean and variance over the draws of the naive loop."""
    draws = naive_draws(case, read, n_draws=n_draws)
    return Moments(draws.mean(0), draws.var(0))
