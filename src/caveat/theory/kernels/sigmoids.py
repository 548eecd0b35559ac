"""The error function, and sigmoids from 0 to 1 made of odd functions.

.. [Williams1998] C. K. I. Williams. Computation with infinite neural networks.
   Neural Computation 10, 1998.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from caveat.theory.kernels.base import Nonlinearity, Slopes, norm_of
from caveat.theory.kernels.covariances import Array, Covariances, angle_from_shortfall


@dataclass(frozen=True)
class Erf(Nonlinearity):
    """The error function: K = (2/pi) arcsin(2 q_xy / sqrt((1+2 q_xx)(1+2 q_yy))).

    From [Williams1998]_ (ledger E73). The arcsine is taken as pi/2 less an angle that
    is right for large variances, too.
    """

    def __call__(self, z: Array) -> Array:
        return np.asarray(special.erf(z))

    def square_mean(self, variance: Array) -> Array:
        angle = np.arctan2(np.sqrt(1 + 4 * variance), 2 * variance)
        return 1 - 2 / np.pi * angle

    def square_mean_slope(self, variance: Array) -> Array:
        return 4 / (np.pi * (1 + 2 * variance) * np.sqrt(1 + 4 * variance))

    def product_mean(self, q: Covariances) -> Array:
        wide = norm_of(q.xx + 0.5, q.yy + 0.5)
        lack = _widening(q, wide) + q.shortfall
        # E73: (2/pi) arcsin( 2 q_xy / sqrt((1+2 q_xx)(1+2 q_yy)) )
        return 1 - 2 / np.pi * angle_from_shortfall(wide, lack)

    def slopes(self, q: Covariances) -> Slopes:
        wide = norm_of(q.xx + 0.5, q.yy + 0.5)
        root = np.sqrt((_widening(q, wide) + q.shortfall) * (wide + q.xy))
        along = 2 / (np.pi * root)
        bend = -0.5 * q.xy * along
        return Slopes(bend / (q.xx[:, None] + 0.5), bend / (q.yy + 0.5), along)


@dataclass(frozen=True)
class ZeroToOne(Nonlinearity):
    """(1 + odd(sqrt(factor) z)) / 2 of an odd function: its kernel is (1 + K) / 4.

    The normal distribution function with Erf and 1/2 (ledger E73), the logistic sigmoid
    with Tanh and 1/4.

    Attributes
    ----------
    odd : Nonlinearity
        With odd(-z) = -odd(z), so that its mean is 0.
    factor : float
        By which variances are multiplied.
    """

    odd: Nonlinearity
    factor: float

    def __call__(self, z: Array) -> Array:
        return 0.5 * (1 + self.odd(math.sqrt(self.factor) * z))

    def square_mean(self, variance: Array) -> Array:
        return 0.25 * (1 + self.odd.square_mean(self.factor * variance))

    def square_mean_slope(self, variance: Array) -> Array:
        slope = self.odd.square_mean_slope(self.factor * variance)
        return 0.25 * self.factor * slope

    def product_mean(self, q: Covariances) -> Array:
        return 0.25 * (1 + self.odd.product_mean(q.scaled(self.factor)))

    def slopes(self, q: Covariances) -> Slopes:
        inner = self.odd.slopes(q.scaled(self.factor))
        return Slopes(*(0.25 * self.factor * part for part in inner))

    def error_bound(self, q: Covariances) -> float:
        return self.odd.error_bound(q.scaled(self.factor))


def _widening(q: Covariances, wide: Array) -> Array:
    """sqrt((q_xx+1/2)(q_yy+1/2)) - sqrt(q_xx q_yy), without cancellation."""
    return (0.25 + 0.5 * (q.xx[:, None] + q.yy)) / (wide + q.norm)
