"""The rewards behind the figure, and what is read from them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

TICKS_PER_BATCH = 200  # the plotting interval of the demo that the paper used
_WINDOW = 5  # batches: the demo plots the mean of the last 1000 rewards


@dataclass(frozen=True)
class Reward:
    """Mean reward of one agent in one batch of 200 ticks.

    Attributes
    ----------
    policy : str
        Which one, and whether it has ceased to explore.
    seed, batch : int
        Batches count from 1.
    reward : float
    """

    policy: str
    seed: int
    batch: int
    reward: float


def table(rewards: Sequence[Reward], policy: str) -> NDArray[np.float64]:
    """Rewards of a policy, shape (seeds, batches)."""
    own = [r for r in rewards if r.policy == policy]
    found = np.zeros((1 + max(r.seed for r in own), max(r.batch for r in own)))
    for r in own:
        found[r.seed, r.batch - 1] = r.reward
    return found


def smoothed(rewards: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of the last 1000 rewards after each batch; of all, at the very start."""
    total = np.cumsum(rewards, axis=-1)
    total[..., _WINDOW:] -= total[..., :-_WINDOW].copy()
    count = np.minimum(np.arange(1, rewards.shape[-1] + 1), _WINDOW)
    found: NDArray[np.float64] = total / count
    return found


def batches_to(
    threshold: float, curve: NDArray[np.float64], *, burn_in: int
) -> int | None:
    """Batches after burn-in until a curve is above a threshold; None if it never is."""
    above = np.flatnonzero(curve[burn_in:] > threshold)
    return int(above[0]) + 1 if above.size else None
