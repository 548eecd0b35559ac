"""Playing a bandit, and comparing agents by their regret over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from caveat import _validation as check
from caveat.decisions.bandits.problems import BanditProblem
from caveat.decisions.bandits.protocols import Agent, Array, Integers
from caveat.errors import ParameterError


@dataclass(frozen=True, eq=False)
class BanditRun:
    """What an agent did in each round.

    Attributes
    ----------
    arms : array of int, shape (rounds,)
    rewards : array, shape (rounds,)
        What the arms gave.
    regret : array, shape (rounds,)
        What they are worth less than the best ones.
    """

    arms: Integers
    rewards: Array
    regret: Array

    @property
    def cumulative_regret(self) -> Array:
        """Sum of the regret up to each round."""
        return np.cumsum(self.regret)


def run_bandit(
    problem: BanditProblem,
    agent: Agent,
    *,
    n_rounds: int,
    batch_size: int = 1,
    seed: int = 0,
) -> BanditRun:
    """Let an agent play a problem.

    Parameters
    ----------
    problem : BanditProblem
        What is played.
    agent : Agent
        Who plays, and learns meanwhile.
    n_rounds : int
        For how long.
    batch_size : int
        Rewards come back after so many rounds together: contexts are acted on in
        batches, each row by itself, and the agent learns after each batch.
    seed : int
        Of the problem: agents with the same seed see the same rounds.

    Returns
    -------
    BanditRun

    Examples
    --------
    >>> from caveat.decisions.bandits import LinearProblem, UniformAgent
    >>> problem = LinearProblem(n_features=3, n_arms=4)
    >>> run = run_bandit(problem, UniformAgent(4, seed=0), n_rounds=100)
    >>> run.cumulative_regret.shape
    (100,)
    """
    rounds = problem.rounds(check.positive_int("n_rounds", n_rounds), seed)
    size = check.positive_int("batch_size", batch_size)
    arms = np.zeros(n_rounds, dtype=np.int64)
    rewards = np.zeros(n_rounds)
    for start in range(0, n_rounds, size):
        batch = np.arange(start, min(start + size, n_rounds))
        contexts = rounds.contexts[batch]
        arms[batch] = agent.act(contexts)
        rewards[batch] = rounds.rewards[batch, arms[batch]]
        agent.partial_fit(contexts, arms[batch], rewards[batch])
    return BanditRun(arms, rewards, rounds.regret(arms))


@dataclass(frozen=True, eq=False)
class RegretCurve:
    """Cumulative regret of one agent over several seeds.

    Attributes
    ----------
    name : str
        Of the agent.
    cumulative : array, shape (seeds, places)
        After so many rounds each.
    every : int
        Column j is the regret after (j + 1) times so many rounds.
    """

    name: str
    cumulative: Array
    every: int = 1

    @property
    def rounds(self) -> Integers:
        """The rounds after which the regret is given, shape (places,)."""
        return self.every * np.arange(1, self.cumulative.shape[1] + 1)

    def thinned(self, every: int) -> "RegretCurve":
        """The curve with only each so many-th of its places."""
        step = check.positive_int("every", every)
        kept = self.cumulative[:, step - 1 :: step]
        return RegretCurve(self.name, kept, self.every * step)

    @property
    def mean(self) -> Array:
        """Over seeds, shape (places,)."""
        mean: Array = self.cumulative.mean(0)
        return mean

    @property
    def standard_error(self) -> Array:
        """Of the mean, from the spread of the seeds (ledger E151); shape (places,)."""
        n_seeds = len(self.cumulative)
        if n_seeds < 2:
            return np.full(self.cumulative.shape[1], np.nan)
        # E151: sd over seeds / sqrt(seeds)
        error: Array = self.cumulative.std(0, ddof=1) / np.sqrt(n_seeds)
        return error

    @property
    def final(self) -> Array:
        """At the end, shape (seeds,)."""
        return self.cumulative[:, -1]


def compare_agents(
    problem: BanditProblem,
    agents: Mapping[str, Callable[[int], Agent]],
    *,
    n_rounds: int,
    seeds: Sequence[int],
    batch_size: int = 1,
) -> list[RegretCurve]:
    """Let several agents play the same rounds, over and over with other seeds.

    Parameters
    ----------
    problem : BanditProblem
        What is played.
    agents : mapping of str to callable
        By name, what makes a new agent from a seed.
    n_rounds, batch_size : int
        As for :func:`run_bandit`.
    seeds : sequence of int
        Of the problem and of the agents.

    Returns
    -------
    list of RegretCurve
        In the order of ``agents``.

    Examples
    --------
    >>> from caveat.decisions.bandits import (
    ...     LinearProblem, LinearRewards, ThompsonAgent, UniformAgent)
    >>> problem = LinearProblem(n_features=3, n_arms=4)
    >>> curves = compare_agents(
    ...     problem,
    ...     {
    ...         "Thompson": lambda seed: ThompsonAgent(LinearRewards(3, 4, seed=seed)),
    ...         "uniform": lambda seed: UniformAgent(4, seed=seed),
    ...     },
    ...     n_rounds=200,
    ...     seeds=range(3),
    ... )
    >>> curves[0].mean[-1] < curves[1].mean[-1]
    np.True_
    """
    if not agents or not len(seeds):
        raise ParameterError(
            f"There must be at least one agent and one seed. "
            f"Got {len(agents)} and {len(seeds)}."
        )
    curves = []
    for name, make in agents.items():
        played = [
            run_bandit(
                problem, make(seed), n_rounds=n_rounds, batch_size=batch_size, seed=seed
            ).cumulative_regret
            for seed in seeds
        ]
        curves.append(RegretCurve(name, np.stack(played)))
    return curves
