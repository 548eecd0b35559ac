"""Q-learners side by side: one stochastic pass to act, one mask to learn."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat.errors import ShapeError
from caveat.rl.qlearning.memory import ReplayMemory
from caveat.rl.qlearning.networks import Floats, QNetworks
from caveat.rl.qlearning.settings import QSettings
from caveat.rl.states import restore, states_of


class DQNFleet:
    """Independent agents that step together, each in an environment of its own.

    Deep Q-learning of paper 001, section 5.4. To act, each agent takes the best action
    of one stochastic pass, that is of one function drawn from the posterior (Thompson
    sampling); to learn, it replays transitions through one sampled mask. There is one
    network and no target network, as in the paper. Agents of the same seed start with
    the same weights and the same random moves, whatever their settings.

    Parameters
    ----------
    n_inputs, n_actions : int
        Sizes of an observation and of the choice.
    settings : QSettings
    seeds : sequence of int
        One for each agent.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.rl import DQNFleet, QSettings
    >>> fleet = DQNFleet(4, 2, settings=QSettings.thompson(), seeds=[0, 1, 2])
    >>> fleet.act(np.zeros((3, 4))).shape
    (3,)
    """

    def __init__(
        self,
        n_inputs: int,
        n_actions: int,
        *,
        settings: QSettings,
        seeds: Sequence[int],
    ) -> None:
        self.settings = settings
        self.age = 0
        self._n_actions = n_actions
        self._generators = [_generators(seed) for seed in seeds]
        weights, self._moves, memory, noise = zip(*self._generators, strict=True)
        sizes = (n_inputs, *settings.hidden, n_actions)
        self.networks = QNetworks(
            sizes, settings.drop_rates, weights=weights, noise=noise
        )
        self.replay = ReplayMemory(settings.capacity, n_inputs, memory)

    def __len__(self) -> int:
        return len(self._generators)

    def act(self, observations: NDArray[Any]) -> NDArray[np.int64]:
        """The next action of every agent.

        Parameters
        ----------
        observations : array, shape (agents, inputs)
            What each agent sees.

        Returns
        -------
        array of int, shape (agents,)
        """
        chance, choice = np.array([g.random(2) for g in self._moves]).T
        moves = (choice * self._n_actions).astype(np.int64)
        epsilon = self.exploration_rate
        if epsilon >= 1.0:
            return moves
        return np.where(chance < epsilon, moves, self.exploit(observations))

    def exploit(self, observations: NDArray[Any]) -> NDArray[np.int64]:
        """The best actions of one sampled network each (ledger E135)."""
        x = self._checked(observations)[:, None]
        # E135
        best: NDArray[np.int64] = self.networks.values(x)[:, 0].argmax(-1)
        return best

    def exploit_average(self, observations: NDArray[Any]) -> NDArray[np.int64]:
        """The best actions of the networks without dropout: no exploration at all."""
        x = self._checked(observations)[:, None]
        best: NDArray[np.int64] = self.networks.averaged(x)[:, 0].argmax(-1)
        return best

    @property
    def exploration_rate(self) -> float:
        """Probability that the next move is random."""
        if self.age < self.settings.random_steps:
            return 1.0
        return self.settings.epsilon(self.age)

    def observe(
        self,
        observations: NDArray[Any],
        actions: NDArray[np.int64],
        rewards: NDArray[Any],
        next_observations: NDArray[Any],
        terminated: NDArray[np.bool_] | bool = False,
    ) -> None:
        """Remember a transition of every agent; nothing follows if ``terminated``."""
        goes_on = np.broadcast_to(np.logical_not(terminated), len(self))
        self.replay.add((observations, next_observations, actions, rewards, goes_on))
        self.age += 1

    def learn(self) -> None:
        """One step of gradient descent on replayed transitions (ledger E136).

        The target is r + γ max_a Q(x', a) under masks of its own, and constant; the
        prediction Q(x, a) has fresh masks, and gradients go through these.
        """
        settings = self.settings
        if self.replay.size <= settings.learning_starts:
            return
        batch = self.replay.sample(settings.batch_size)
        following = self.networks.values(batch.next_observations).max(-1)
        # E136
        discount = np.float32(settings.discount)
        targets = batch.rewards + discount * batch.goes_on * following
        rate = settings.learning_rate / settings.batch_size
        self.networks.descend(
            batch.observations,
            batch.actions,
            targets,
            rate=rate,
            decay=rate * settings.l2_coefficient,
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """All that changes, by name, as arrays to be stored; not copied."""
        own = {"age": np.array(self.age), "remembered": np.array(self.replay.size)}
        own["generators"] = states_of(self._all_generators)
        return {**self._arrays(), **own}

    def load_state(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a :meth:`state` of a fleet that was made in the same way."""
        for name, array in self._arrays().items():
            array[...] = state[name]
        self.age, self.replay.size = int(state["age"]), int(state["remembered"])
        restore(self._all_generators, state["generators"])

    def _arrays(self) -> dict[str, NDArray[Any]]:
        layers = (*self.networks.weights, *self.networks.biases)
        named = {f"network_{k}": array for k, array in enumerate(layers)}
        return {**named, "replay": self.replay.stored}

    @property
    def _all_generators(self) -> list[np.random.Generator]:
        return [generator for own in self._generators for generator in own]

    def _checked(self, observations: NDArray[Any]) -> Floats:
        x = np.array(observations, dtype="f")  # torch wants to own what it reads
        expected = len(self), self.networks.architecture.n_inputs
        if x.shape != expected:
            raise ShapeError(
                f"observations must have the shape {expected}, a row per agent. "
                f"Got {x.shape}."
            )
        return x


def _generators(seed: int) -> tuple[np.random.Generator, ...]:
    """Of one agent: for weights, moves, memory and masks."""
    streams = np.random.SeedSequence(seed).spawn(4)
    return tuple(np.random.default_rng(stream) for stream in streams)
