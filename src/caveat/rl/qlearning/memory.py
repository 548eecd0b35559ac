"""What a fleet of agents remembers."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from caveat.rl.qlearning.networks import Floats


class Transitions(NamedTuple):
    """Transitions; the first axis is the agents, the second the rows.

    Attributes
    ----------
    observations, next_observations : array, shape (agents, rows, inputs)
    actions : array of int, shape (agents, rows)
    rewards : array, shape (agents, rows)
    goes_on : array, shape (agents, rows)
        0 where the episode ended, else 1.
    """

    observations: Floats
    next_observations: Floats
    actions: NDArray[np.int64]
    rewards: Floats
    goes_on: Floats


class ReplayMemory:
    """Memories of equal age, one for each agent.

    While there is room, transitions are appended; then each new one takes the place of
    a random old one. Rows are drawn with replacement. A transition is one row of
    numbers, so that a random one costs one visit to main memory.

    Parameters
    ----------
    capacity : int
        Transitions that each memory holds.
    n_inputs : int
        Size of an observation.
    generators : sequence of numpy Generator
        One for each agent.
    """

    def __init__(
        self, capacity: int, n_inputs: int, generators: Sequence[np.random.Generator]
    ) -> None:
        self._generators = list(generators)
        self._n_inputs = n_inputs
        self.size = 0
        self.stored: Floats = np.zeros(
            (len(self._generators), capacity, 2 * n_inputs + 3), dtype="f"
        )
        self._first = np.arange(len(self._generators)) * capacity

    def add(self, transition: Sequence[NDArray[Any]]) -> None:
        """Remember one transition of every agent, in the order of a sample."""
        n_agents, capacity, width = self.stored.shape
        place = np.full(n_agents, self.size)
        if self.size == capacity:
            place = np.array([g.integers(capacity) for g in self._generators])
        self.size = min(self.size + 1, capacity)
        row = np.concatenate(
            [np.reshape(part, (n_agents, -1)) for part in transition], axis=1
        )
        self.stored.reshape(-1, width)[self._first + place] = row

    def sample(self, n_rows: int) -> Transitions:
        """Rows (agents, ``n_rows``), each agent's own."""
        drawn = np.array([g.random(n_rows) for g in self._generators]) * self.size
        place = drawn.astype(np.int64) + self._first[:, None]
        rows = self.stored.reshape(-1, self.stored.shape[2]).take(place, axis=0)
        inputs = self._n_inputs
        action, reward, goes_on = np.moveaxis(rows[..., 2 * inputs :], -1, 0)
        return Transitions(
            rows[..., :inputs],
            rows[..., inputs : 2 * inputs],
            action.astype(np.int64),
            reward,
            goes_on,
        )
