"""Cosine and sine, with Gaussian biases or a uniform phase.

From cos u cos v = [cos(u - v) + cos(u + v)] / 2 and E cos g = exp(-Var g / 2).
"""

from dataclasses import dataclass

import numpy as np

from caveat.theory.kernels.base import Nonlinearity, Slopes
from caveat.theory.kernels.covariances import Array, Covariances


@dataclass(frozen=True)
class CosineWave(Nonlinearity):
    """cos z: K = exp(-(q_xx + q_yy)/2) cosh(q_xy) (ledger E74)."""

    def __call__(self, z: Array) -> Array:
        return np.cos(z)

    def square_mean(self, variance: Array) -> Array:
        return 0.5 * (1 + np.exp(-2 * variance))

    def square_mean_slope(self, variance: Array) -> Array:
        return -np.exp(-2 * variance)

    def product_mean(self, q: Covariances) -> Array:
        # E74: [exp(-(q_xx+q_yy-2q_xy)/2) + exp(-(q_xx+q_yy+2q_xy)/2)] / 2
        return 0.5 * _nearer(q) * (1 + np.exp(-2 * np.abs(q.xy)))

    def slopes(self, q: Covariances) -> Slopes:
        bend = -0.5 * self.product_mean(q)
        return Slopes(bend, bend, SineWave().product_mean(q))


@dataclass(frozen=True)
class SineWave(Nonlinearity):
    """sin z: K = exp(-(q_xx + q_yy)/2) sinh(q_xy) (ledger E74)."""

    def __call__(self, z: Array) -> Array:
        return np.sin(z)

    def square_mean(self, variance: Array) -> Array:
        return -0.5 * np.expm1(-2 * variance)

    def square_mean_slope(self, variance: Array) -> Array:
        return np.exp(-2 * variance)

    def product_mean(self, q: Covariances) -> Array:
        size = -0.5 * _nearer(q) * np.expm1(-2 * np.abs(q.xy))
        return np.sign(q.xy) * size

    def slopes(self, q: Covariances) -> Slopes:
        bend = -0.5 * self.product_mean(q)
        return Slopes(bend, bend, CosineWave().product_mean(q))


@dataclass(frozen=True)
class UniformPhase(Nonlinearity):
    """cos (or sin) of z + b with b uniform on (0, 2 pi): half the RBF kernel.

    K = exp(-s_w² |x - y|² / 2) / 2 (ledger E75), of length-scale 1 / s_w. Gaussian
    biases make no difference. Twice this kernel is that of sqrt(2) cos.
    """

    def __call__(self, z: Array) -> Array:
        return np.cos(z)

    def square_mean(self, variance: Array) -> Array:
        return np.full_like(variance, 0.5)

    def square_mean_slope(self, variance: Array) -> Array:
        return np.zeros_like(variance)

    def product_mean(self, q: Covariances) -> Array:
        # E75: exp(-(q_xx + q_yy - 2 q_xy) / 2) / 2
        return 0.5 * np.exp(-0.5 * q.squared_distance)

    def slopes(self, q: Covariances) -> Slopes:
        product = self.product_mean(q)
        return Slopes(-0.5 * product, -0.5 * product, product)

    def draw_biases(
        self, generator: np.random.Generator, n_units: int, bias_variance: float
    ) -> Array:
        """Phases, uniform on (0, 2 pi)."""
        return generator.uniform(0.0, 2 * np.pi, n_units)


def _nearer(q: Covariances) -> Array:
    """exp(-(q_xx + q_yy - 2 |q_xy|) / 2), which is at most 1."""
    return np.exp(-0.5 * np.where(q.xy > 0, q.squared_distance, q.squared_sum))
