"""Linear models of rewards with the exact posterior of paper 002."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self, final

import numpy as np

from caveat import _validation as check
from caveat._random import Seed, as_seed
from caveat.decisions.bandits.annealing import annealed_rate, check_after
from caveat.decisions.bandits.protocols import (
    Array,
    Integers,
    check_contexts,
    check_outcome,
)
from caveat.decisions.bandits.statistics import LinearStatistics, WeightPosterior
from caveat.decisions.thompson_samplers import numbered_generator
from caveat.errors import ParameterError, ShapeError
from caveat.maxent.linear import VariancePrior


class _Linear(ABC):
    """What linear models share: sums, a posterior made when it is needed, draws.

    Parameters
    ----------
    n_models : int
        How many posteriors.
    drop_rates : array, shape (inputs of a model,)
        f of each.
    prior_precision, variance_prior, anneal_after, seed
        As for :class:`LinearRewards`.
    """

    def __init__(
        self,
        n_models: int,
        drop_rates: Array,
        *,
        prior_precision: float,
        variance_prior: tuple[float, float],
        anneal_after: int | None,
        seed: Seed,
    ) -> None:
        self._drop_rates = drop_rates
        self._precision = check.positive("prior_precision", prior_precision)
        self._prior = _proper(variance_prior)
        self._after = check_after(anneal_after)
        self._seed = as_seed(seed)
        self._sums = LinearStatistics(n_models, len(drop_rates))
        self._known: dict[int, WeightPosterior] = {}

    @abstractmethod
    def _rewards(self, weights: Array, contexts: Array) -> Array:
        """Rewards (rows, arms) of weights (rows or 1, models, inputs)."""

    def posterior(self, k: int) -> WeightPosterior:
        """The posterior of arm k (of the only model, if arms share one)."""
        if k not in self._known:
            rates = self._rates(int(self._sums.count.sum()))
            self._known[k] = self._sums.posterior(
                k, rates, self._precision, self._prior
            )
        return self._known[k]

    def function(self, number: int) -> Callable[[Any], Array]:
        """Draw ``number``: contexts (rows, features) to rewards (rows, arms)."""
        weights = self._weights(range(number, check.draw_number(number) + 1))
        return lambda contexts: self._rewards(weights, np.asarray(contexts, float))

    def sample(self, contexts: Array, first_draw: int) -> Array:
        """Rewards (rows, arms): row i is ``function(first_draw + i)`` of context i."""
        numbers = range(first_draw, first_draw + len(contexts))
        return self._rewards(self._weights(numbers), contexts)

    def mean(self, contexts: Array) -> Array:
        """The posterior mean of the rewards, shape (rows, arms)."""
        models = range(len(self._sums.count))
        weights = np.stack([self.posterior(k).effective_mean for k in models])
        return self._rewards(weights[None], contexts)

    def _learn(self, models: Integers, rows: Array, rewards: Array) -> None:
        changed = self._sums.add(models, rows, rewards)
        if self._after is not None:
            self._known.clear()
        for k in changed:
            self._known.pop(k, None)

    def _rates(self, n_rows: int) -> Array:
        top = float(self._drop_rates.max())
        if self._after is None or top == 0.0:
            return self._drop_rates
        falling = [
            annealed_rate(float(rate), n_rows, after=self._after)
            for rate in self._drop_rates
        ]
        return np.array(falling)

    def _weights(self, numbers: range) -> Array:
        """Effective weights of some draws, shape (draws, models, inputs)."""
        n_models, n_inputs = self._sums.moment.shape
        models = [self.posterior(k) for k in range(n_models)]
        shapes = np.array([model.shape for model in models])
        normal = np.empty((len(numbers), n_models, n_inputs))
        gamma = np.empty((len(numbers), n_models))
        for place, number in enumerate(numbers):
            rng = numbered_generator(self._seed, number)
            normal[place] = rng.standard_normal((n_models, n_inputs))
            gamma[place] = rng.standard_gamma(shapes)
        drawn = [
            model.effective_draws(normal[:, k], gamma[:, k])
            for k, model in enumerate(models)
        ]
        return np.stack(drawn, 1)


@final
class LinearRewards(_Linear):
    """A linear model per arm, each with the exact dropout posterior of paper 002.

    Every arm has weights of its own and an intercept, which is never dropped. With
    ``drop_rate=0`` this is Bayesian linear regression. The posterior always
    concentrates as 1/√n; with a fixed rate above 0 it does so at weights that are
    shrunk, by a penalty f / (1 - f) per row, so with correlated features the best
    arm can stay unknown for ever. ``anneal_after`` removes that.

    Parameters
    ----------
    n_features : int
        Of a context.
    n_arms : int
        How many.
    drop_rate : float
        f in [0, 1).
    prior_precision : float
        lambda0 above 0; w | v ~ N(0, v / lambda0).
    variance_prior : (float, float)
        Shape and rate, both above 0, of the inverse-gamma prior of the noise variance
        v, so that an arm that has not been tried has a proper posterior.
    anneal_after : int, optional
        Rows, of all arms together, from which on the odds of being dropped fall as
        1/n; by default they stay.
    seed : int, torch.Generator or None
        Fixes all draws.

    Examples
    --------
    >>> import numpy as np
    >>> model = LinearRewards(2, 3, drop_rate=0.1, seed=0)
    >>> contexts = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> model = model.partial_fit(contexts, np.array([0, 2]), np.array([1.0, 0.5]))
    >>> model.mean(contexts).shape, model.function(0)(contexts).shape
    ((2, 3), (2, 3))
    """

    def __init__(
        self,
        n_features: int,
        n_arms: int,
        *,
        drop_rate: float = 0.0,
        prior_precision: float = 1.0,
        variance_prior: tuple[float, float] = (1.0, 1.0),
        anneal_after: int | None = None,
        seed: Seed = None,
    ) -> None:
        self._n_features = check.positive_int("n_features", n_features)
        self._n_arms = check.positive_int("n_arms", n_arms)
        rate = check.drop_rate(drop_rate, where="LinearRewards")
        super().__init__(
            self._n_arms,
            np.append(np.full(self._n_features, rate), 0.0),
            prior_precision=prior_precision,
            variance_prior=variance_prior,
            anneal_after=anneal_after,
            seed=seed,
        )

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self._n_arms

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Learn from some more rounds."""
        rows = check_contexts(contexts, self._n_features)
        chosen, gains = check_outcome(arms, rewards, len(rows), self._n_arms)
        self._learn(chosen, _with_intercept(rows), gains)
        return self

    def _rewards(self, weights: Array, contexts: Array) -> Array:
        rows = _with_intercept(check_contexts(contexts, self._n_features))
        rewards: Array = np.matmul(weights, rows[:, :, None])[:, :, 0]
        return rewards


@final
class SharedLinearRewards(_Linear):
    """One linear model for all arms, on features of context and arm together.

    For many arms that are described by features, of which each is tried seldom.

    Parameters
    ----------
    features : callable
        From contexts ``(rows, *…)`` to features (rows, arms, inputs).
    n_arms, n_inputs : int
        The sizes of what it gives.
    drop_rate, prior_precision, variance_prior, anneal_after, seed
        As for :class:`LinearRewards`; there is no intercept unless a feature is 1.

    Examples
    --------
    >>> import numpy as np
    >>> prices = np.array([0.1, 0.5, 0.9])
    >>> def features(contexts):
    ...     return contexts[:, :1, None] * np.stack([prices, prices**2], 1)
    >>> model = SharedLinearRewards(features, 3, 2, seed=0)
    >>> model.mean(np.ones((4, 1))).shape
    (4, 3)
    """

    def __init__(
        self,
        features: Callable[[Array], Array],
        n_arms: int,
        n_inputs: int,
        *,
        drop_rate: float = 0.0,
        prior_precision: float = 1.0,
        variance_prior: tuple[float, float] = (1.0, 1.0),
        anneal_after: int | None = None,
        seed: Seed = None,
    ) -> None:
        self._features = features
        self._n_arms = check.positive_int("n_arms", n_arms)
        n_inputs = check.positive_int("n_inputs", n_inputs)
        rate = check.drop_rate(drop_rate, where="SharedLinearRewards")
        super().__init__(
            1,
            np.full(n_inputs, rate),
            prior_precision=prior_precision,
            variance_prior=variance_prior,
            anneal_after=anneal_after,
            seed=seed,
        )

    @property
    def n_arms(self) -> int:
        """How many arms there are."""
        return self._n_arms

    def partial_fit(self, contexts: Array, arms: Integers, rewards: Array) -> Self:
        """Learn from some more rounds."""
        inputs = self._inputs(contexts)
        chosen, gains = check_outcome(arms, rewards, len(inputs), self._n_arms)
        rows = inputs[np.arange(len(inputs)), chosen]
        self._learn(np.zeros_like(chosen), rows, gains)
        return self

    def _rewards(self, weights: Array, contexts: Array) -> Array:
        rewards: Array = np.matmul(self._inputs(contexts), weights[:, 0, :, None])
        return rewards[:, :, 0]

    def _inputs(self, contexts: Array) -> Array:
        inputs = np.asarray(self._features(contexts), dtype=np.float64)
        expected = (len(contexts), self._n_arms, len(self._drop_rates))
        if inputs.shape != expected:
            raise ShapeError(
                f"features must give an array of shape (rows, arms, inputs), here "
                f"{expected}. Got {inputs.shape}."
            )
        return inputs


def _with_intercept(rows: Array) -> Array:
    return np.concatenate([rows, np.ones((len(rows), 1))], 1)


def _proper(prior: tuple[float, float]) -> VariancePrior:
    try:
        shape, rate = prior
    except (TypeError, ValueError):
        raise ParameterError(
            f"variance_prior must be a pair (shape, rate). Got {prior!r}."
        ) from None
    return VariancePrior(
        check.positive("the shape of variance_prior", shape),
        check.positive("the rate of variance_prior", rate),
    )
