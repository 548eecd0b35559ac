"""Gamma distributions of precisions, by moment matching."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_SHIFTS = np.array([-1.0, 0.0, 1.0])


class Gamma(NamedTuple):
    """Shapes and rates of gamma distributions, one of each per network."""

    shape: Array
    rate: Array

    @property
    def mean_variance(self) -> Array:
        """The mean of 1 / precision."""
        return self.rate / (self.shape - 1.0)


class Normalisers(NamedTuple):
    """log Z with the shape as it is, and with 1 and 2 more; the same for networks."""

    log_z: Array
    log_z1: Array
    log_z2: Array
    total: Array  # variance that log Z is that of


def normalisers(error: Array, variance: Array, gamma: Gamma) -> Normalisers:
    """log of the integral of N(error; 0, variance + 1 / precision), approximately.

    The Student-t that precisions lead to is taken as a Gaussian of the same variance.

    Parameters
    ----------
    error, variance : array, shape (networks,)
        How far an observation is from its mean, and the variance of that mean.
    gamma : Gamma
        The precisions.

    Returns
    -------
    Normalisers
        Up to the same constant.
    """
    # E174: log Z_k = log N(e; 0, v + b / (a - 1 + k)), k = 0, 1, 2
    total = variance + gamma.rate / (gamma.shape + _SHIFTS[:, None])
    logs = -0.5 * (np.log(total) + error * error / total)
    return Normalisers(logs[0], logs[1], logs[2], total[0])


def matched(gamma: Gamma, z: Normalisers) -> Gamma:
    """The gamma with the mean and second moment that a factor leads to.

    Parameters
    ----------
    gamma : Gamma
        Before.
    z : Normalisers
        Of the factor.

    Returns
    -------
    Gamma
        Without a mean of 1 / precision, it is what it was.
    """
    # E175: a' = 1 / (Z Z2 / Z1^2 (a+1)/a - 1);  b' = 1 / (Z2/Z1 (a+1)/b - Z1/Z a/b)
    bend = z.log_z2 - 2.0 * z.log_z1 + z.log_z
    shape = 1.0 / np.expm1(bend + np.log1p(1.0 / gamma.shape))
    slope = 1.0 - gamma.shape * np.expm1(-bend)
    rate = gamma.rate * np.exp(z.log_z1 - z.log_z2) / slope
    good = (shape > 1.0) & (rate > 0.0) & np.isfinite(shape) & np.isfinite(rate)
    if good.all():
        return Gamma(shape, rate)
    return Gamma(np.where(good, shape, gamma.shape), np.where(good, rate, gamma.rate))
