"""Non-linearities with a kink or a jump at 0: (leaky) ReLU, step and sign.

ReLU and step are half the arc-cosine kernels of order 1 and 0 [Cho2009]_. Only the
angle and the norms matter.

.. [Cho2009] Y. Cho, L. K. Saul. Kernel methods for deep learning. NIPS 2009.
"""

import math
from dataclasses import dataclass

import numpy as np

from caveat.errors import ParameterError
from caveat.theory.kernels.base import Nonlinearity, ProductMoments, Slopes, ratio
from caveat.theory.kernels.covariances import Array, Covariances

_SAME = 1e-8  # angle below which two points count as one in derivatives of a jump


@dataclass(frozen=True)
class LeakyRelu(Nonlinearity):
    """max(z, 0) + slope min(z, 0): ReLU for slope 0, the absolute value for slope -1.

    K = slope q_xy + (1 - slope)² K_relu,
    K_relu = sqrt(q_xx q_yy) (sin t + (pi - t) cos t) / (2 pi) with t the angle
    (ledger E71).

    Attributes
    ----------
    slope : float, default 0
        Below zero.
    """

    slope: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.slope):
            raise ParameterError(f"slope must be finite. Got {self.slope}.")

    def __call__(self, z: Array) -> Array:
        return np.where(z > 0, z, self.slope * z)

    @property
    def _kink(self) -> float:
        return (1 - self.slope) ** 2

    def square_mean(self, variance: Array) -> Array:
        return 0.5 * (1 + self.slope**2) * variance

    def square_mean_slope(self, variance: Array) -> Array:
        return np.full_like(variance, 0.5 * (1 + self.slope**2))

    def product_mean(self, q: Covariances) -> Array:
        t = q.angle
        # E71: sqrt(q_xx q_yy) (sin t + (pi - t) cos t) / (2 pi)
        relu = q.norm * (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)
        return self.slope * q.xy + self._kink * relu

    def moments(self, q: Covariances) -> ProductMoments:
        t = q.angle
        turn = (np.sin(t) - t * np.cos(t)) / np.pi
        relu = 0.5 * (q.shortfall - q.norm * turn)
        shortfall = self.slope * q.shortfall + self._kink * relu
        return ProductMoments(self.product_mean(q), np.maximum(shortfall, 0.0))

    def slopes(self, q: Covariances) -> Slopes:
        root_x, root_y = np.sqrt(q.xx)[:, None], np.sqrt(q.yy)[None, :]
        bend = self._kink * np.sin(q.angle) / (4 * np.pi)
        along = self.slope + self._kink * (np.pi - q.angle) / (2 * np.pi)
        return Slopes(bend * ratio(root_y, root_x), bend * ratio(root_x, root_y), along)


@dataclass(frozen=True)
class Jump(Nonlinearity):
    """``below`` for z < 0, ``above`` for z > 0 and 0 at 0: step and sign.

    With c = (above - below)² / (2 pi) and t the angle, K = K(x, x) - c t (ledger E72).
    Step: (pi - t) / (2 pi); sign: 1 - 2 t / pi.

    Attributes
    ----------
    below, above : float, default 0 and 1
        The step; -1 and 1 are the sign.
    """

    below: float = 0.0
    above: float = 1.0

    def __call__(self, z: Array) -> Array:
        return np.where(z > 0, self.above, np.where(z < 0, self.below, 0.0))

    @property
    def _rate(self) -> float:
        return (self.above - self.below) ** 2 / (2 * np.pi)

    @property
    def _top(self) -> float:
        return 0.5 * (self.above**2 + self.below**2)

    def square_mean(self, variance: Array) -> Array:
        return np.where(variance > 0, self._top, 0.0)

    def square_mean_slope(self, variance: Array) -> Array:
        return np.zeros_like(variance)

    def product_mean(self, q: Covariances) -> Array:
        # E72: (above² + below²) / 2 - (above - below)² t / (2 pi)
        return q.defined * (self._top - self._rate * q.angle)

    def moments(self, q: Covariances) -> ProductMoments:
        return ProductMoments(self.product_mean(q), q.defined * self._rate * q.angle)

    def slopes(self, q: Covariances) -> Slopes:
        """Infinite as the points meet; 0 there, as the derivative along any path."""
        sine = np.sin(q.angle)
        apart = np.where(sine > _SAME, q.defined * sine, 0.0)
        turn = ratio(-0.5 * self._rate * q.correlation, apart)
        return Slopes(
            ratio(turn, q.xx[:, None]),
            ratio(turn, q.yy[None, :]),
            ratio(np.full_like(sine, self._rate), apart * q.norm),
        )
