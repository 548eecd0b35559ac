"""Networks as models of rewards: one with dropout, or an ensemble without.

.. [Osband2016] I. Osband. Risk versus uncertainty in deep learning: Bayes, bootstrap
   and the dangers of dropout. NIPS workshop on Bayesian deep learning, 2016.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor, nn

from caveat import _validation as check
from caveat._random import Seed, as_seed, random_uniform, stream_key
from caveat.decisions.bandits.annealing import annealed_rate, check_after
from caveat.decisions.bandits.protocols import (
    Array,
    Integers,
    check_contexts,
    check_outcome,
)
from caveat.decisions.bandits.replay import ReplayNetworks, ReplayTraining
from caveat.decisions.thompson_samplers import chosen_member
from caveat.errors import ParameterError
from caveat.sampling.mcdropout import MCDropout
from caveat.training.members import Architecture

TRAINING = ReplayTraining()


class _Networks:
    """What both have in common: contexts in, rewards of all arms out."""

    def __init__(
        self, n_features: int, n_arms: int, training: ReplayTraining, seed: int
    ) -> None:
        self._shape = Architecture(
            check.positive_int("n_features", n_features),
            training.hidden,
            check.positive_int("n_arms", n_arms),
        )
        self._seed = seed
        self._replay: ReplayNetworks

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self._shape.n_outputs

    def mean(self, contexts: Array) -> Array:
        """Rewards (rows, arms): the mean of the networks with no unit dropped."""
        rows = check_contexts(contexts, self._shape.n_inputs)
        means: Array = self._replay.outputs(rows).mean(0).double().numpy()
        return means

    def _remember(self, contexts: Array, arms: Integers, rewards: Array) -> bool:
        rows = check_contexts(contexts, self._shape.n_inputs)
        chosen, gains = check_outcome(arms, rewards, len(rows), self.n_arms)
        return self._replay.add(rows, chosen, gains)


@final
class DropoutRewards(_Networks):
    """A network with dropout whose masks are drawn, as in section 5.4 of paper 001.

    With a fixed drop rate its draws do not concentrate [Osband2016]_: masks have the
    same law however many rounds were seen, so that the spread tends to a level that
    the rate sets, not to zero, and exploration never ends. ``anneal_after`` lets the
    rate fall with the rounds.

    Parameters
    ----------
    n_features : int
        Of a context; contexts should be in standard units.
    n_arms : int
        How many.
    drop_rate : float
        Of the hidden units, in (0, 1).
    anneal_after : int, optional
        Rounds from which on the odds of being dropped fall as 1/n; by default they
        stay.
    training : ReplayTraining
        Shape of the network, and how it learns.
    seed : int, torch.Generator or None
        Fixes everything that is random.

    Examples
    --------
    >>> import numpy as np
    >>> model = DropoutRewards(2, 3, drop_rate=0.1, seed=0)
    >>> contexts = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> model = model.partial_fit(contexts, np.array([0, 2]), np.array([1.0, 0.5]))
    >>> model.sample(contexts, 0).shape, model.function(0)(contexts).shape
    ((2, 3), (2, 3))
    """

    def __init__(
        self,
        n_features: int,
        n_arms: int,
        *,
        drop_rate: float = 0.1,
        anneal_after: int | None = None,
        training: ReplayTraining = TRAINING,
        seed: Seed = None,
    ) -> None:
        super().__init__(n_features, n_arms, training, as_seed(seed))
        self._top_rate = check.unit_interval("drop_rate", drop_rate)
        self._after = check_after(anneal_after)
        self._replay = ReplayNetworks(self._shape, 1, training, seed=self._seed)
        self.network = self._replay.module(0, self._top_rate)
        # A draw a decision: they must be independent of each other.
        draw = partial(MCDropout, self.network, seed=self._seed, stratified=False)
        self._functions, self._rowwise = draw(), draw(shared=False)

    @property
    def drop_rate(self) -> float:
        """The rate after the rounds so far."""
        return annealed_rate(self._top_rate, self._replay.n_rows, after=self._after)

    def function(self, number: int) -> Callable[[Any], Array]:
        """Draw ``number``: contexts (rows, features) to rewards (rows, arms)."""
        draw = self._functions.function(number)
        return lambda contexts: self._replay.scaled(_quietly(draw, contexts))

    def sample(self, contexts: Array, first_draw: int) -> Array:
        """Rewards (rows, arms), with masks of its own for each row, in one pass."""
        rows = check_contexts(contexts, self._shape.n_inputs)
        draw = self._rowwise.function(first_draw)
        return self._replay.scaled(_quietly(draw, rows))

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Learn from some more rounds."""
        if self._remember(contexts, arms, rewards):
            rate = self.drop_rate
            for module in self.network:
                if isinstance(module, nn.Dropout):
                    module.p = rate
            self._replay.train(rate)
        return self


@final
class EnsembleRewards(_Networks):
    """Several networks without dropout; a draw is one of them.

    They differ by their first weights, by the order of rounds, and each is shown
    only some of the rounds.

    Parameters
    ----------
    n_features, n_arms, training, seed
        As for :class:`DropoutRewards`.
    n_members : int
        How many networks.
    row_share : float
        In (0, 1]: the chance that a network is shown a round.
    """

    def __init__(
        self,
        n_features: int,
        n_arms: int,
        *,
        n_members: int = 10,
        row_share: float = 0.5,
        training: ReplayTraining = TRAINING,
        seed: Seed = None,
    ) -> None:
        super().__init__(n_features, n_arms, training, as_seed(seed))
        self._n_members = check.positive_int("n_members", n_members)
        if not 0.0 < row_share <= 1.0:
            raise ParameterError(f"row_share must lie in (0, 1]. Got {row_share}.")
        self._replay = ReplayNetworks(
            self._shape, self._n_members, training, row_share=row_share, seed=self._seed
        )

    def function(self, number: int) -> Callable[[Any], Array]:
        """Draw ``number``, one of the networks: contexts to rewards (rows, arms)."""
        k = chosen_member(self._seed, check.draw_number(number), self._n_members)
        return lambda contexts: self._outputs(contexts)[k]

    def sample(self, contexts: Array, first_draw: int) -> Array:
        """Rewards (rows, arms): row i is ``function(first_draw + i)`` of context i."""
        numbers = range(first_draw, first_draw + len(contexts))
        uniform = random_uniform(stream_key(self._seed, "member"), numbers).numpy()
        chosen = (uniform * self._n_members).astype(np.int64)
        rewards: Array = self._outputs(contexts)[chosen, np.arange(len(contexts))]
        return rewards

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Learn from some more rounds."""
        if self._remember(contexts, arms, rewards):
            self._replay.train(0.0)
        return self

    def _outputs(self, contexts: Any) -> Array:
        rows = check_contexts(contexts, self._shape.n_inputs)
        outputs: Array = self._replay.outputs(rows).double().numpy()
        return outputs


@torch.no_grad()
def _quietly(draw: Callable[[Tensor], Any], contexts: Any) -> Tensor:
    outputs: Tensor = draw(torch.as_tensor(np.asarray(contexts), dtype=torch.float32))
    return outputs
