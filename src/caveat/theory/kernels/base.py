"""What a non-linearity must know for its covariance function."""

import math
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from caveat.theory.kernels.covariances import Array, Covariances


class ProductMoments(NamedTuple):
    """What a layer of units makes of the covariances of its pre-activations.

    Attributes
    ----------
    product : array, shape (n, m)
        E sigma(z_x) sigma(z_y).
    shortfall : array, shape (n, m)
        sqrt(E sigma(z_x)² E sigma(z_y)²) - product, at least 0.
    """

    product: Array
    shortfall: Array


class Slopes(NamedTuple):
    """Derivatives of the product by q_xx, q_yy and q_xy, each of shape (n, m)."""

    xx: Array
    yy: Array
    xy: Array


class Nonlinearity(ABC):
    """A function sigma of pre-activations, and its Gaussian moments.

    By Price's theorem the slopes are (ledger E82)

        d/dq_xy = E sigma'(z_x) sigma'(z_y),    d/dq_xx = E sigma''(z_x) sigma(z_y) / 2.
    """

    @abstractmethod
    def __call__(self, z: Array) -> Array:
        """sigma(z), element by element."""

    @abstractmethod
    def square_mean(self, variance: Array) -> Array:
        """E sigma(z)² for z ~ N(0, variance)."""

    @abstractmethod
    def square_mean_slope(self, variance: Array) -> Array:
        """Its derivative by the variance."""

    @abstractmethod
    def product_mean(self, q: Covariances) -> Array:
        """E sigma(z_x) sigma(z_y), shape (n, m)."""

    @abstractmethod
    def slopes(self, q: Covariances) -> Slopes:
        """Derivatives of ``product_mean``."""

    def moments(self, q: Covariances) -> ProductMoments:
        """The product and what it lacks to the bound of Cauchy and Schwarz."""
        product = self.product_mean(q)
        squares = (self.square_mean(part) for part in (q.xx, q.yy))
        return ProductMoments(product, np.maximum(norm_of(*squares) - product, 0.0))

    def error_bound(self, q: Covariances) -> float:
        """Error of ``product_mean`` over sqrt(K(x, x) K(y, y)): 0 for a closed form."""
        return 0.0

    def draw_biases(
        self, generator: np.random.Generator, n_units: int, bias_variance: float
    ) -> Array:
        """Biases of ``n_units`` units: b ~ N(0, s_b²)."""
        return math.sqrt(bias_variance) * generator.standard_normal(n_units)


def norm_of(left: Array, right: Array) -> Array:
    """sqrt(left right) for every pair, shape (n, m)."""
    return np.sqrt(left)[:, None] * np.sqrt(right)


def ratio(numerator: Array, denominator: Array) -> Array:
    """The quotient, and 0 where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    zeros = np.zeros(numerator.shape)
    return np.divide(numerator, denominator, out=zeros, where=denominator > 0)
