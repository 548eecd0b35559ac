"""Mean and variance of a rectified Gaussian, and their derivatives."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx

Array = NDArray[np.float64]

_ROOT_HALF_PI = np.sqrt(np.pi / 2)
_ROOT_HALF = np.sqrt(0.5)
_DENSITY = 1 / np.sqrt(2 * np.pi)
_FAR = 40.0  # beyond, a normal density is below the smallest number there is


class Rectified(NamedTuple):
    """max(0, a) of a ~ N(m, v), and what its derivatives are made of."""

    mean: Array
    variance: Array
    above: Array  # Pr(a > 0)
    below: Array
    density: Array  # that of a at 0, times the standard deviation
    std: Array  # of a


def rectified(mean: Array, variance: Array) -> Rectified:
    """Moments of max(0, a) for a ~ N(mean, variance).

    Everything is written by the tail on the far side of 0, so that nothing cancels: no
    test of the size of mean / std is needed, which public programs get the wrong way
    round.

    Parameters
    ----------
    mean, variance : array
        Of a; variances above 0.

    Returns
    -------
    Rectified
        Of the same shape.
    """
    std = np.sqrt(variance)
    alpha = mean / std
    t = np.minimum(np.abs(alpha), _FAR)
    density = _DENSITY * np.exp(-0.5 * t * t)
    mills = _ROOT_HALF_PI * erfcx(_ROOT_HALF * t)  # Pr(|z| > t) / 2, over the density
    tail = mills * density
    # E170: E max(0, z - t) = phi(t) - t Q(t);  E max(0, z - t)^2 = (1 + t^2) Q - t phi
    first = density * (1.0 - t * mills)
    second = density * ((1.0 + t * t) * mills - t)
    negative = alpha < 0
    # With max(0, a) = a + max(0, -a), the side of a large mean follows from the other.
    spread = np.where(negative, second, 1.0 - second - 2.0 * t * first) - first * first
    return Rectified(
        np.maximum(mean, 0.0) + std * first,
        variance * np.maximum(spread, 0.0),
        np.where(negative, tail, 1.0 - tail),
        np.where(negative, 1.0 - tail, tail),
        density,
        std,
    )


def rectified_slopes(
    unit: Rectified, d_mean: Array, d_variance: Array
) -> tuple[Array, Array]:
    """Derivatives by the mean and variance of a, from those by max(0, a)'s.

    Parameters
    ----------
    unit : Rectified
        The units.
    d_mean, d_variance : array
        Derivatives of a number by ``unit.mean`` and ``unit.variance``.

    Returns
    -------
    tuple of array
        Its derivatives by the mean and the variance of a.
    """
    # E171: dM/dm = Phi, dM/dv = phi/2s, dV/dm = 2 M (1 - Phi), dV/dv = Phi - M phi/s
    ratio = unit.density / unit.std
    by_mean = d_mean * unit.above + d_variance * (2.0 * unit.mean * unit.below)
    by_variance = d_mean * (0.5 * ratio) + d_variance * (unit.above - unit.mean * ratio)
    return by_mean, by_variance
