"""Any sampler of functions as a model of rewards: yours, fitted by your function."""

from collections.abc import Callable
from typing import Any, Self, final

import numpy as np
import torch

from caveat import _validation as check
from caveat._random import Seed, as_seed
from caveat.decisions.bandits.protocols import (
    Array,
    Integers,
    check_contexts,
    check_outcome,
)
from caveat.decisions.thompson import FunctionSampler, independent
from caveat.decisions.thompson_samplers import numbered_generator
from caveat.errors import ShapeError

Fit = Callable[[Array, Integers, Array], FunctionSampler]


@final
class RefittedRewards:
    """Rewards by whatever a function of yours makes of all rounds so far.

    Parameters
    ----------
    fit : callable
        From contexts (rounds, features), arms (rounds,) and rewards (rounds,) to a
        sampler, such as an ``MCDropout``, whose functions give rewards (rows, arms).
    n_features, n_arms : int
        Of the problem.
    every : int
        New rounds after which ``fit`` is called again.
    n_mean_draws : int
        Draws that are averaged for the mean.
    seed : int, torch.Generator or None
        Fixes the draws before the first fit, which are normal numbers.

    Examples
    --------
    >>> import numpy as np, torch, caveat
    >>> from caveat.decisions.bandits import RefittedRewards, ThompsonAgent
    >>> def fit(contexts, arms, rewards):
    ...     net = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.Linear(2, 3))
    ...     return caveat.MCDropout(net, seed=0)  # train it first, in earnest
    >>> agent = ThompsonAgent(RefittedRewards(fit, 2, 3, every=4))
    >>> contexts = np.ones((4, 2))
    >>> agent = agent.partial_fit(contexts, agent.act(contexts), np.ones(4))
    >>> agent.act(contexts).shape
    (4,)
    """

    def __init__(
        self,
        fit: Fit,
        n_features: int,
        n_arms: int,
        *,
        every: int = 50,
        n_mean_draws: int = 30,
        seed: Seed = None,
    ) -> None:
        self._fit = fit
        self._n_features = check.positive_int("n_features", n_features)
        self._n_arms = check.positive_int("n_arms", n_arms)
        self._every = check.positive_int("every", every)
        self._n_mean_draws = check.positive_int("n_mean_draws", n_mean_draws)
        self._seed = as_seed(seed)
        self._sampler: FunctionSampler | None = None
        self._contexts = np.zeros((0, self._n_features))
        self._arms = np.zeros(0, dtype=np.int64)
        self._rewards = np.zeros(0)
        self._fitted_at = 0

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self._n_arms

    def function(self, number: int) -> Callable[[Any], Array]:
        """Draw ``number``: contexts (rows, features) to rewards (rows, arms)."""
        if self._sampler is not None:
            draw = self._sampler.function(number)
            return lambda contexts: self._outputs(draw, contexts)
        rewards = numbered_generator(self._seed, number).standard_normal(self._n_arms)
        return lambda contexts: np.tile(rewards, (len(contexts), 1))

    def sample(self, contexts: Array, first_draw: int) -> Array:
        """Rewards (rows, arms): row i is ``function(first_draw + i)`` of context i."""
        rows = check_contexts(contexts, self._n_features)
        drawn = [
            self.function(first_draw + i)(rows[i : i + 1]) for i in range(len(rows))
        ]
        return np.concatenate([np.zeros((0, self._n_arms)), *drawn])

    def mean(self, contexts: Array) -> Array:
        """The mean of some draws, shape (rows, arms)."""
        rows = check_contexts(contexts, self._n_features)
        draws = [self.function(t)(rows) for t in range(self._n_mean_draws)]
        mean: Array = np.mean(draws, 0)
        return mean

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Learn from some more rounds; ``fit`` is called when there are enough."""
        rows = check_contexts(contexts, self._n_features)
        chosen, gains = check_outcome(arms, rewards, len(rows), self._n_arms)
        self._contexts = np.concatenate([self._contexts, rows])
        self._arms = np.concatenate([self._arms, chosen])
        self._rewards = np.concatenate([self._rewards, gains])
        if len(self._arms) - self._fitted_at >= self._every:
            self._fitted_at = len(self._arms)
            fitted = self._fit(
                self._contexts.copy(), self._arms.copy(), self._rewards.copy()
            )
            self._sampler = independent(fitted)  # a draw a decision
        return self

    @torch.no_grad()
    def _outputs(self, draw: Callable[[Any], Any], contexts: Array) -> Array:
        inputs = torch.as_tensor(np.asarray(contexts), dtype=torch.float32)
        values = torch.as_tensor(draw(inputs))
        if tuple(values.shape) != (len(contexts), self._n_arms):
            raise ShapeError(
                f"Functions of the sampler that fit returns must give rewards of shape "
                f"(rows, {self._n_arms}). Got {tuple(values.shape)} for "
                f"{len(contexts)} rows."
            )
        rewards: Array = values.double().numpy(force=True)
        return rewards
