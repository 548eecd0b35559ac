"""Contextual bandits to try agents on: linear, the wheel, and classification.

A problem makes all its rounds at once, with the reward that *every* arm would give, so
that agents can be compared on the same rounds.

.. [Riquelme2018] C. Riquelme, G. Tucker, J. Snoek. Deep Bayesian bandits showdown. ICLR
   2018; appendix B for the wheel.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, Self, final

import numpy as np

from caveat import _validation as check
from caveat.decisions.bandits.protocols import Array, Integers
from caveat.errors import ParameterError, ShapeError

_N_WAVES = 300  # cosines in a smooth function


@dataclass(frozen=True, eq=False)
class BanditRounds:
    """Contexts in their order, and what every arm is worth and would give.

    Attributes
    ----------
    contexts : array, shape (rounds, features)
    means : array, shape (rounds, arms)
        Expected rewards.
    rewards : array, shape (rounds, arms)
        Rewards with their noise.
    """

    contexts: Array
    means: Array
    rewards: Array

    def __len__(self) -> int:
        return len(self.contexts)

    def regret(self, arms: Integers) -> Array:
        """What each round's arm is worth less than the best one (ledger E149)."""
        # E149: max_a m(x, a) - m(x, a_t)
        taken = self.means[np.arange(len(self)), arms]
        gaps: Array = self.means.max(1) - taken
        return gaps

    def uniform_regret(self) -> Array:
        """The expected regret of a uniformly random arm in each round (E149)."""
        gaps: Array = self.means.max(1) - self.means.mean(1)
        return gaps


class BanditProblem(Protocol):
    """A contextual bandit."""

    @property
    def n_features(self) -> int:
        """Of a context."""
        ...

    @property
    def n_arms(self) -> int:
        """How many there are."""
        ...

    def rounds(self, n_rounds: int, seed: int) -> BanditRounds:
        """So many rounds; the same for the same seed."""
        ...


@final
@dataclass(frozen=True)
class LinearProblem:
    """Rewards that are linear in normal contexts; each arm has weights of its own.

    Attributes
    ----------
    n_features, n_arms : int
        Sizes. Each seed has weights of its own, N(0, 1/n_features).
    correlation : float
        In [0, 1), of any two features.
    noise_std : float
        Of the rewards.
    """

    n_features: int = 10
    n_arms: int = 5
    correlation: float = 0.5
    noise_std: float = 0.5

    def __post_init__(self) -> None:
        check.positive_int("n_features", self.n_features)
        check.positive_int("n_arms", self.n_arms)
        if not 0.0 <= self.correlation < 1.0:
            raise ParameterError(
                f"correlation must lie in [0, 1). Got {self.correlation}."
            )

    def rounds(self, n_rounds: int, seed: int) -> BanditRounds:
        """So many rounds; the same for the same seed."""
        rng = np.random.default_rng([seed, 0])
        scale = self.n_features**-0.5
        weights = scale * rng.standard_normal((self.n_features, self.n_arms))
        own = rng.standard_normal((n_rounds, self.n_features))
        common = rng.standard_normal((n_rounds, 1))
        contexts = np.sqrt(1.0 - self.correlation) * own
        contexts += np.sqrt(self.correlation) * common
        means = contexts @ weights
        noise = self.noise_std * rng.standard_normal(means.shape)
        return BanditRounds(contexts, means, means + noise)


@final
@dataclass(frozen=True)
class SmoothProblem:
    """Rewards that are smooth random functions of normal contexts, one per arm.

    Each is a sum of cosines, as good as a draw from a Gaussian process with a squared
    exponential kernel of variance 1.

    Attributes
    ----------
    n_features, n_arms : int
        Sizes. Each seed has functions of its own.
    lengthscale : float
        Of the functions; features have variance 1.
    noise_std : float
        Of the rewards.
    """

    n_features: int = 2
    n_arms: int = 5
    lengthscale: float = 1.0
    noise_std: float = 0.3

    def __post_init__(self) -> None:
        check.positive_int("n_features", self.n_features)
        check.positive_int("n_arms", self.n_arms)
        check.lengthscale(self.lengthscale)

    def rounds(self, n_rounds: int, seed: int) -> BanditRounds:
        """So many rounds; the same for the same seed."""
        rng = np.random.default_rng([seed, 3])
        directions = rng.standard_normal((self.n_features, _N_WAVES))
        phases = 2.0 * np.pi * rng.random(_N_WAVES)
        heights = rng.standard_normal((_N_WAVES, self.n_arms))
        contexts = rng.standard_normal((n_rounds, self.n_features))
        waves = np.cos(contexts @ directions / self.lengthscale + phases)
        means = np.sqrt(2.0 / _N_WAVES) * waves @ heights
        noise = self.noise_std * rng.standard_normal(means.shape)
        return BanditRounds(contexts, means, means + noise)


@final
@dataclass(frozen=True)
class WheelProblem:
    """The wheel of [Riquelme2018]_: a safe arm, and a prize that depends on the side.

    Contexts are uniform on the unit disk. Arm 0 is worth 1.2 everywhere, the other
    four 1.0; but outside the radius ``delta`` one of these, by the quadrant, is worth
    50. The larger delta is, the more rarely a prize is seen.

    Attributes
    ----------
    delta : float
        In (0, 1).
    noise_std : float
        Of the rewards.
    """

    delta: float = 0.7
    noise_std: float = 0.01
    n_features: int = field(default=2, init=False)
    n_arms: int = field(default=5, init=False)

    def __post_init__(self) -> None:
        check.unit_interval("delta", self.delta)

    def rounds(self, n_rounds: int, seed: int) -> BanditRounds:
        """So many rounds; the same for the same seed."""
        rng = np.random.default_rng([seed, 1])
        radius = np.sqrt(rng.random(n_rounds))
        angle = 2.0 * np.pi * rng.random(n_rounds)
        contexts = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
        means = np.full((n_rounds, 5), 1.0)
        means[:, 0] = 1.2
        left, below = contexts[:, 0] <= 0, contexts[:, 1] <= 0
        outside = np.flatnonzero(radius > self.delta)
        means[outside, 1 + 2 * left[outside] + below[outside]] = 50.0
        noise = self.noise_std * rng.standard_normal(means.shape)
        return BanditRounds(contexts, means, means + noise)


@final
@dataclass(frozen=True, eq=False)
class ClassificationProblem:
    """A classification set as a bandit: arms are classes, the right one gives 1.

    Attributes
    ----------
    features : array, shape (rows, features)
    labels : array of int, shape (rows,)
        From 0 to n_arms - 1.
    """

    features: Array
    labels: Integers

    def __post_init__(self) -> None:
        if self.features.ndim != 2 or self.labels.shape != (len(self.features),):
            raise ShapeError(
                f"features must have the shape (rows, features) and labels (rows,). "
                f"Got {self.features.shape} and {self.labels.shape}."
            )
        classes = np.unique(self.labels)
        if not np.array_equal(classes, np.arange(len(classes))):
            raise ParameterError(
                f"labels must be the numbers from 0 to the number of classes less 1. "
                f"Got {classes}."
            )

    @classmethod
    def standardised(cls, features: Any, labels: Any) -> Self:
        """The set with each feature at mean 0 and variance 1 (0 if it is constant).

        Only contexts are looked at, which a bandit knows without trying anything.
        """
        rows = np.asarray(features, dtype=np.float64)
        std = rows.std(0)
        rows = (rows - rows.mean(0)) / np.where(std > 0, std, 1.0)
        return cls(rows, np.asarray(labels, dtype=np.int64))

    @property
    def n_features(self) -> int:
        """Of a context."""
        return int(self.features.shape[1])

    @property
    def n_arms(self) -> int:
        """How many classes there are."""
        return int(self.labels.max()) + 1

    def rounds(self, n_rounds: int, seed: int) -> BanditRounds:
        """The rows in random order, again and again if there are not enough."""
        rng = np.random.default_rng([seed, 2])
        n_passes = -(-n_rounds // len(self.labels))
        order = np.concatenate(
            [rng.permutation(len(self.labels)) for _ in range(n_passes)]
        )[:n_rounds]
        means = np.eye(self.n_arms)[self.labels[order]]
        return BanditRounds(self.features[order], means, means)
