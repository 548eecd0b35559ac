"""Multiplicative noise on the weights: its two moments, and draws of it.

Row i of the data sees the weights xi o w. A Gaussian likelihood is quadratic in them,
so the posterior depends on the law of xi only through its mean r and covariance C;
draws are needed for the literal dropped-out predictive alone.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from caveat._validation import drop_rate as valid_rate
from caveat._validation import one_of
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.maxent.linear.arrays import Array


@dataclass(frozen=True, eq=False)
class FeatureNoise(ABC):
    """Noise that multiplies p weights; a group of weights shares its number.

    Attributes
    ----------
    drop_rates : array, shape (p,)
        f of each feature; Gaussian noise has the variance f / (1 - f).
    groups : array of int, shape (p,), or None
        Features with the same number share their noise. None: each has its own.
    """

    drop_rates: Array
    groups: np.ndarray | None = None

    @property
    @abstractmethod
    def mean(self) -> Array:
        """r, the mean of the noise; shape (p,)."""

    @property
    @abstractmethod
    def variance(self) -> Array:
        """c, the variance of the noise; C_de = c_d within a group, 0 between."""

    @abstractmethod
    def _units(self, rates: Array, n_draws: int, rng: np.random.Generator) -> Array:
        """Draws for units of the given rates; shape (draws, units)."""

    def draw(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draws of the noise.

        Parameters
        ----------
        n_draws : int
            How many.
        rng : numpy.random.Generator
            Where the randomness comes from.

        Returns
        -------
        array, shape (draws, p)
        """
        first, unit_of = self.units
        return self._units(self.drop_rates[first], n_draws, rng)[:, unit_of]

    @cached_property
    def units(self) -> tuple[np.ndarray, np.ndarray]:
        """A feature of each unit, and the unit of each feature."""
        numbers = np.arange(len(self.drop_rates))
        labels = numbers if self.groups is None else self.groups
        _, first, unit_of = np.unique(labels, return_index=True, return_inverse=True)
        return first, unit_of


@final
@dataclass(frozen=True, eq=False)
class BernoulliFeatureNoise(FeatureNoise):
    """1 with probability 1 - f and 0 with probability f (paper 002 eq. 12)."""

    @property
    def mean(self) -> Array:
        return 1.0 - self.drop_rates

    @property
    def variance(self) -> Array:
        return self.drop_rates * (1.0 - self.drop_rates)

    def _units(self, rates: Array, n_draws: int, rng: np.random.Generator) -> Array:
        kept: Array = (rng.random((n_draws, len(rates))) >= rates).astype(np.float64)
        return kept


@final
@dataclass(frozen=True, eq=False)
class GaussianFeatureNoise(FeatureNoise):
    """N(1, a) with a = f / (1 - f), which has the same posterior predictions."""

    @property
    def mean(self) -> Array:
        return np.ones_like(self.drop_rates)

    @property
    def variance(self) -> Array:
        return self.drop_rates / (1.0 - self.drop_rates)

    def _units(self, rates: Array, n_draws: int, rng: np.random.Generator) -> Array:
        spread = np.sqrt(rates / (1.0 - rates))
        return 1.0 + spread * rng.standard_normal((n_draws, len(rates)))


KINDS: dict[str, type[FeatureNoise]] = {
    "bernoulli": BernoulliFeatureNoise,
    "gaussian": GaussianFeatureNoise,
}


def make_noise(
    drop_rate: Any, n_features: int, *, kind: Any = "bernoulli", groups: Any = None
) -> FeatureNoise:
    """Noise for ``n_features`` weights, from what a user may write.

    Parameters
    ----------
    drop_rate : float or array, shape (n_features,)
        f in [0, 1): one for all features, or one each.
    n_features : int
        p.
    kind : {"bernoulli", "gaussian"}
        The law of the noise.
    groups : array, shape (n_features,), optional
        Equal labels mark features that are dropped together.

    Returns
    -------
    FeatureNoise

    Examples
    --------
    >>> make_noise(0.4, 3).mean
    array([0.6, 0.6, 0.6])
    >>> make_noise([0.0, 0.5, 0.5], 3, kind="gaussian").variance
    array([0., 1., 1.])
    """
    law = KINDS[one_of("noise", kind, KINDS)]
    rates = _rates(drop_rate, n_features)
    return law(rates, _groups(groups, rates))


def _rates(drop_rate: Any, n_features: int) -> Array:
    try:
        rates = np.asarray(drop_rate, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"drop_rate must be a number or one number per feature. Got {drop_rate!r}."
        ) from error
    if rates.ndim and rates.shape != (n_features,):
        raise ShapeError(
            f"drop_rate must be a number or one number per feature, of shape "
            f"({n_features},). Got the shape {rates.shape}."
        )
    for extreme in (rates.min(), rates.max()):
        valid_rate(float(extreme), where="drop_rate")
    return np.broadcast_to(rates, (n_features,))


def _groups(groups: Any, rates: Array) -> np.ndarray | None:
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != rates.shape:
        raise ShapeError(
            f"groups must hold one label per feature, of shape {rates.shape}. "
            f"Got the shape {labels.shape}."
        )
    _, first, numbers = np.unique(labels, return_index=True, return_inverse=True)
    if not np.array_equal(rates[first][numbers], rates):
        raise ParameterError(
            "Features of one group are dropped together, so they must have the same "
            "drop_rate. Give one rate per group, or leave groups out."
        )
    return numbers
