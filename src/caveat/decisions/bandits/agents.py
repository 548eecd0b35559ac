"""Agents: Thompson sampling, and what it is measured against."""

from typing import Self, final

import numpy as np

from caveat import _validation as check
from caveat._random import Seed, as_seed, stream_key
from caveat.decisions.bandits.protocols import Array, Integers, RewardModel
from caveat.errors import ParameterError


@final
class ThompsonAgent:
    """Draws a function from a model for each context and takes its best arm.

    Parameters
    ----------
    model : RewardModel
        Learns the rewards; its seed fixes the draws.
    initial_pulls : int
        How often each arm is tried first, in turn, whatever the context.

    Examples
    --------
    >>> import numpy as np
    >>> from caveat.decisions.bandits import LinearRewards, ThompsonAgent
    >>> agent = ThompsonAgent(LinearRewards(n_features=1, n_arms=2, seed=0))
    >>> contexts = np.ones((3, 1))
    >>> arms = agent.act(contexts)
    >>> agent = agent.partial_fit(contexts, arms, rewards=arms * 1.0)
    """

    def __init__(self, model: RewardModel, *, initial_pulls: int = 0) -> None:
        self.model = model
        self._n_forced = check.draw_number(initial_pulls) * model.n_arms
        self._round = 0

    def act(self, contexts: Array) -> Integers:
        """An arm for each row, each by a draw of its own (ledger E146)."""
        rewards = self.model.sample(contexts, self._round)
        arms = _in_turn(rewards, self._round, self._n_forced)
        self._round += len(arms)
        return arms

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Let the model learn from what the chosen arms gave."""
        self.model.partial_fit(contexts, arms, rewards)
        return self


@final
class EpsilonGreedyAgent:
    """Takes the best arm of a model's mean, or with probability epsilon any arm.

    Parameters
    ----------
    model : RewardModel
        Learns the rewards.
    epsilon : float
        In [0, 1]; 0 is the greedy agent.
    initial_pulls : int
        As for :class:`ThompsonAgent`.
    seed : int, torch.Generator or None
        Fixes the random arms.
    """

    def __init__(
        self,
        model: RewardModel,
        *,
        epsilon: float = 0.1,
        initial_pulls: int = 0,
        seed: Seed = None,
    ) -> None:
        if not 0.0 <= epsilon <= 1.0:
            raise ParameterError(f"epsilon must lie in [0, 1]. Got {epsilon}.")
        self.model = model
        self._epsilon = float(epsilon)
        self._n_forced = check.draw_number(initial_pulls) * model.n_arms
        self._round = 0
        self._rng = arms_generator(seed)

    def act(self, contexts: Array) -> Integers:
        """An arm for each row."""
        best = _in_turn(self.model.mean(contexts), self._round, self._n_forced)
        explores = self._rng.random(len(best)) < self._epsilon
        explores &= self._round + np.arange(len(best)) >= self._n_forced
        any_arm = self._rng.integers(self.model.n_arms, size=len(best))
        self._round += len(best)
        return np.where(explores, any_arm, best)

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Let the model learn from what the chosen arms gave."""
        self.model.partial_fit(contexts, arms, rewards)
        return self


@final
class UniformAgent:
    """Takes any arm, and learns nothing.

    Parameters
    ----------
    n_arms : int
        How many there are.
    seed : int, torch.Generator or None
        Fixes the arms.
    """

    def __init__(self, n_arms: int, *, seed: Seed = None) -> None:
        self._n_arms = check.positive_int("n_arms", n_arms)
        self._rng = arms_generator(seed)

    def act(self, contexts: Array) -> Integers:
        """An arm for each row."""
        return self._rng.integers(self._n_arms, size=len(contexts))

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Nothing is learned."""
        return self


def _in_turn(rewards: Array, first_round: int, n_forced: int) -> Integers:
    """The best arm of each row, but for the first rounds arms in turn."""
    rounds = first_round + np.arange(len(rewards))
    best = rewards.argmax(1)
    return np.where(rounds < n_forced, rounds % rewards.shape[1], best)


def arms_generator(seed: Seed) -> np.random.Generator:
    """The generator of random arms under a seed."""
    return np.random.Generator(np.random.SFC64(stream_key(as_seed(seed), "arms")))
