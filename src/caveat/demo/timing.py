"""How long T draws take, by Caveat and by the loop that one would write by hand."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from caveat.demo.training import noisy_pass
from caveat.predictive import Predictive

P = TypeVar("P", bound=Predictive)


@dataclass(frozen=True)
class Timing:
    """Seconds for the same T draws.

    Attributes
    ----------
    seconds : float
        By Caveat, first call and summary included.
    plain_seconds : float
        By the plain loop, scaled to T passes.
    plain_passes : int
        How many passes of the plain loop were run to measure it.
    """

    seconds: float
    plain_seconds: float
    plain_passes: int

    @property
    def speed_up(self) -> float:
        return self.plain_seconds / self.seconds


def timed(
    predict: Callable[[], P], model: nn.Sequential, x: Tensor, *, plain_passes: int
) -> tuple[P, Timing]:
    """Call ``predict``, and time it against plain passes of ``model``."""
    start = time.perf_counter()
    predictive = predict()
    seconds = time.perf_counter() - start
    per_pass = _plain_pass_seconds(model, x, plain_passes)
    timing = Timing(seconds, predictive.n_draws * per_pass, plain_passes)
    return predictive, timing


@torch.no_grad()
def _plain_pass_seconds(model: nn.Sequential, x: Tensor, n_passes: int) -> float:
    """Mean time of a pass in a loop with dropout on."""
    generator = torch.Generator().manual_seed(0)
    noisy_pass(model, x, generator)  # warm
    start = time.perf_counter()
    torch.stack([noisy_pass(model, x, generator) for _ in range(n_passes)])
    return (time.perf_counter() - start) / n_passes
