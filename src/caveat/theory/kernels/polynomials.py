"""Identity and square, whose moments are those of a Gaussian itself."""

from dataclasses import dataclass

import numpy as np

from caveat.theory.kernels.base import Nonlinearity, ProductMoments, Slopes
from caveat.theory.kernels.covariances import Array, Covariances


@dataclass(frozen=True)
class Identity(Nonlinearity):
    """sigma(z) = z: K = q_xy (ledger E76); as the last layer, the output of a net."""

    def __call__(self, z: Array) -> Array:
        return z

    def square_mean(self, variance: Array) -> Array:
        return variance

    def square_mean_slope(self, variance: Array) -> Array:
        return np.ones_like(variance)

    def product_mean(self, q: Covariances) -> Array:
        return q.xy

    def moments(self, q: Covariances) -> ProductMoments:
        return ProductMoments(q.xy, q.shortfall)

    def slopes(self, q: Covariances) -> Slopes:
        none = np.zeros_like(q.xy)
        return Slopes(none, none, np.ones_like(q.xy))


@dataclass(frozen=True)
class Square(Nonlinearity):
    """sigma(z) = z²: K = q_xx q_yy + 2 q_xy² (ledger E76)."""

    def __call__(self, z: Array) -> Array:
        return np.square(z)

    def square_mean(self, variance: Array) -> Array:
        return 3 * np.square(variance)

    def square_mean_slope(self, variance: Array) -> Array:
        return 6 * variance

    def product_mean(self, q: Covariances) -> Array:
        # E76: q_xx q_yy + 2 q_xy²
        return np.multiply.outer(q.xx, q.yy) + 2 * np.square(q.xy)

    def moments(self, q: Covariances) -> ProductMoments:
        return ProductMoments(self.product_mean(q), 2 * q.shortfall * (q.norm + q.xy))

    def slopes(self, q: Covariances) -> Slopes:
        across = np.ones_like(q.xy)
        return Slopes(across * q.yy, across * q.xx[:, None], 4 * q.xy)
