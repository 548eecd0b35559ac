"""What bandits are made of: a model of rewards, an agent, a problem."""

from collections.abc import Callable
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from caveat.errors import ParameterError, ShapeError

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


class RewardModel(Protocol):
    """A distribution over functions from a context to the mean reward of every arm.

    It is a ``FunctionSampler``, learns as rewards come in, and has a best guess.
    """

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        ...

    def function(self, number: int) -> Callable[[Any], Any]:
        """Draw ``number``: contexts (rows, features) to rewards (rows, arms)."""
        ...

    def sample(self, contexts: Array, first_draw: int) -> Array:
        """Rewards (rows, arms), each row under a draw of its own."""
        ...

    def mean(self, contexts: Array) -> Array:
        """The best guess of the rewards, shape (rows, arms)."""
        ...

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Learn from some more rounds."""
        ...


class Agent(Protocol):
    """Chooses an arm for each context, and learns from the reward of that arm."""

    def act(self, contexts: Array) -> Integers:
        """An arm for each row."""
        ...

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Learn from what the chosen arms gave."""
        ...


def check_contexts(contexts: Any, n_features: int) -> Array:
    """Contexts (rows, features) of finite numbers."""
    rows = np.asarray(contexts, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise ShapeError(
            f"contexts must have the shape (rows, {n_features}). Got {rows.shape}; "
            f"pass a single context x as x[None, :]."
        )
    if not np.isfinite(rows).all():
        raise ParameterError("contexts must be finite. Got NaN or infinity.")
    return rows


def check_outcome(
    arms: Any, rewards: Any, n_rows: int, n_arms: int
) -> tuple[Integers, Array]:
    """One arm from 0 to n_arms - 1 and one finite reward for each row."""
    chosen, gains = np.asarray(arms), np.asarray(rewards, dtype=np.float64)
    if chosen.shape != (n_rows,) or gains.shape != (n_rows,):
        raise ShapeError(
            f"arms and rewards must have one value per context, {n_rows}. "
            f"Got the shapes {chosen.shape} and {gains.shape}."
        )
    if chosen.dtype.kind not in "iu" or (
        n_rows and not 0 <= chosen.min() <= chosen.max() < n_arms
    ):
        raise ParameterError(
            f"arms must be whole numbers from 0 to {n_arms - 1}. Got {chosen}."
        )
    if not np.isfinite(gains).all():
        raise ParameterError(
            "rewards must be finite. Got NaN or infinity; leave out rounds whose "
            "reward is not known."
        )
    return chosen.astype(np.int64), gains
