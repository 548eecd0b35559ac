"""tanh, at any steepness: a series while it is gentle, a mixture of erfs beyond.

The logistic distribution is a scale mixture of normals, whose scale is twice a variable
k with the law of Kolmogorov and Smirnov's statistic [Stefanski1991]_. So

    tanh(z) = E erf(z / (k sqrt 2)),
    E tanh(z_x) tanh(z_y) = E (2/pi) arcsin(2 a b q_xy / sqrt((1+2a²q_xx)(1+2b²q_yy)))

with independent a, b = 1 / (k sqrt 2). The density of log k is analytic and decays on
both sides, so the trapezoid rule needs few nodes for all z at once, however steep.

.. [Stefanski1991] L. A. Stefanski. A normal scale mixture representation of the
   logistic distribution. Statistics and Probability Letters 11, 1991.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from caveat.theory.kernels.base import Nonlinearity, Slopes, norm_of
from caveat.theory.kernels.covariances import Array, Covariances
from caveat.theory.kernels.smooth import Smooth

_GENTLE = 25.0  # variance up to which the series has all digits
_FROM, _TO, _NODES = np.log(0.17), np.log(4.5), 22  # of log k; 1e-16 lies outside
_NEGLIGIBLE = 1e-14  # share of a pair in a mixture
_BLOCK = 1 << 14  # pairs of points at a time: they stay in the cache of the processor
_SERIES = np.arange(1, 30)


@dataclass(frozen=True)
class Tanh(Nonlinearity):
    """tanh z, to at least 11 digits whatever the variances (ledger E78, E84)."""

    def __call__(self, z: Array) -> Array:
        return np.tanh(z)

    def square_mean(self, variance: Array) -> Array:
        return _rule(variance).square_mean(variance)

    def square_mean_slope(self, variance: Array) -> Array:
        return _rule(variance).square_mean_slope(variance)

    def product_mean(self, q: Covariances) -> Array:
        return _rule(q.xx, q.yy).product_mean(q)

    def slopes(self, q: Covariances) -> Slopes:
        return _rule(q.xx, q.yy).slopes(q)


@dataclass(frozen=True)
class ErfMixture(Nonlinearity):
    """sum_i share_i erf(rate_i z), in closed form.

    Attributes
    ----------
    rates, shares : tuple of float
    """

    rates: tuple[float, ...]
    shares: tuple[float, ...]

    def __call__(self, z: Array) -> Array:
        parts = zip(self.rates, self.shares, strict=True)
        waves = (share * special.erf(rate * z) for rate, share in parts)
        return sum(waves, np.zeros_like(z))

    def square_mean(self, variance: Array) -> Array:
        total = np.zeros_like(variance)
        for a, b, share in self._pairs():
            wide = np.sqrt((1 + 2 * a * a * variance) * (1 + 2 * b * b * variance))
            total += share * _arcsine(2 * a * b * variance / wide)
        return total

    def square_mean_slope(self, variance: Array) -> Array:
        total = np.zeros_like(variance)
        for a, b, share in self._pairs():
            left, right = 1 + 2 * a * a * variance, 1 + 2 * b * b * variance
            slope = 2 * a * b / np.sqrt(left + right - 1) * (1 / left + 1 / right)
            total += share / np.pi * slope
        return total

    def product_mean(self, q: Covariances) -> Array:
        total = np.zeros_like(q.xy)
        rows = max(1, _BLOCK // max(1, len(q.yy)))
        for start in range(0, len(q.xx), rows):
            part = slice(start, start + rows)
            for a, b, share in self._pairs():
                wide = norm_of(1 + 2 * a * a * q.xx[part], 1 + 2 * b * b * q.yy)
                total[part] += share * _arcsine(2 * a * b * q.xy[part] / wide)
        return total

    def slopes(self, q: Covariances) -> Slopes:
        total = Slopes(*(np.zeros_like(q.xy) for _ in range(3)))
        for a, b, share in self._pairs():
            wide_x, wide_y = (1 + 2 * a * a * q.xx)[:, None], 1 + 2 * b * b * q.yy
            room = wide_x * wide_y - np.square(2 * a * b * q.xy)
            along = share * 4 * a * b / (np.pi * np.sqrt(room))
            total.xy[:] += along
            total.xx[:] -= a * a * q.xy * along / wide_x
            total.yy[:] -= b * b * q.xy * along / wide_y
        return total

    def _pairs(self) -> Iterator[tuple[float, float, float]]:
        """Two rates and the product of their shares, where it is not negligible."""
        parts = list(zip(self.rates, self.shares, strict=True))
        for a, share_a in parts:
            for b, share_b in parts:
                if abs(share_a * share_b) > _NEGLIGIBLE:
                    yield a, b, share_a * share_b


@lru_cache(maxsize=1)
def tanh_as_erfs() -> ErfMixture:
    """tanh as a sum of 22 error functions, right to 11 digits everywhere."""
    log_k = np.linspace(_FROM, _TO, _NODES)
    k = np.exp(log_k)
    # E84: tanh(z) = E erf(z / (k sqrt 2)), k of Kolmogorov's law
    shares = (log_k[1] - log_k[0]) * k * _kolmogorov_density(k)
    rates = 1 / (k * np.sqrt(2))
    return ErfMixture(tuple(rates.tolist()), tuple(shares.tolist()))


def _kolmogorov_density(k: Array) -> Array:
    """By the series that converges fast: one for large k, its dual for small."""
    n, odd = _SERIES[:, None], 2 * _SERIES[:, None] - 1
    large = np.sum((-1.0) ** (n + 1) * n**2 * np.exp(-2 * (n * k) ** 2), 0) * 8 * k
    angle = (odd * np.pi) ** 2 / (4 * k**2)
    terms = (angle - 1) * np.exp(-angle / 2)
    small = np.sqrt(2 * np.pi) / k**2 * np.sum(terms, 0)
    return np.where(k > 1, large, small)


def _rule(*variances: Array) -> Nonlinearity:
    largest = max(part.max(initial=0.0) for part in variances)
    return Smooth(np.tanh) if largest <= _GENTLE else tanh_as_erfs()


def _arcsine(sine: Array) -> Array:
    """(2/pi) arcsin."""
    return 2 / np.pi * np.arcsin(np.clip(sine, -1.0, 1.0))
