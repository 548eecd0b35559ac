"""Second moments of two sets of pre-activations, with the angle between them.

For z = w'x + b with w ~ N(0, s_w² I) and b ~ N(0, s_b²), the pair (z(x), z(y)) is
Gaussian with variances q_xx, q_yy and covariance q_xy. Everything a layer does to a
covariance is a function of these three. The angle arccos(q_xy / sqrt(q_xx q_yy)) could
be had from them, but arccos loses half of the digits for neighbours, so it is
carried along.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from caveat.errors import InputTypeError, ParameterError, ShapeError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Covariances:
    """Moments of pre-activations at n points x and m points y.

    Attributes
    ----------
    xx : array, shape (n,)
        Variances at x.
    yy : array, shape (m,)
        Variances at y.
    xy : array, shape (n, m)
        Covariances.
    angle : array, shape (n, m)
        arccos of the correlation, in [0, pi], to full accuracy near 0; pi/2 where a
        variance is 0.
    """

    xx: Array
    yy: Array
    xy: Array
    angle: Array

    @classmethod
    def of_inputs(
        cls, x: Array, y: Array, *, weight_variance: float, bias_variance: float
    ) -> "Covariances":
        """Those of the first layer: q_xy = s_w² x'y + s_b² (ledger E70)."""
        left, right = (
            _with_bias(points, weight_variance, bias_variance) for points in (x, y)
        )
        # E70: q_xy = s_w² x'y + s_b²
        xx, yy = (np.square(points).sum(1) for points in (left, right))
        return cls(xx, yy, left @ right.T, _angle_between(left, right))

    @property
    def norm(self) -> Array:
        """sqrt(q_xx q_yy), shape (n, m)."""
        return np.sqrt(self.xx)[:, None] * np.sqrt(self.yy)

    @property
    def correlation(self) -> Array:
        """In [-1, 1], shape (n, m)."""
        return np.cos(self.angle)

    @property
    def shortfall(self) -> Array:
        """sqrt(q_xx q_yy) - q_xy >= 0 without cancellation, shape (n, m)."""
        return 2 * self.norm * np.square(np.sin(self.angle / 2))

    @property
    def squared_distance(self) -> Array:
        """q_xx + q_yy - 2 q_xy >= 0 without cancellation, shape (n, m)."""
        return np.square(self._gap) + 2 * self.shortfall

    @property
    def squared_sum(self) -> Array:
        """q_xx + q_yy + 2 q_xy >= 0 without cancellation, shape (n, m)."""
        return np.square(self._gap) + 4 * self.norm * np.square(np.cos(self.angle / 2))

    @property
    def _gap(self) -> Array:
        return np.sqrt(self.xx)[:, None] - np.sqrt(self.yy)

    @property
    def defined(self) -> Array:
        """1 where both variances are above 0 and there is an angle, else 0."""
        return np.multiply.outer(self.xx > 0, self.yy > 0).astype(np.float64)

    def scaled(self, factor: float) -> "Covariances":
        """Those of the pre-activations times sqrt(factor)."""
        return Covariances(
            factor * self.xx, factor * self.yy, factor * self.xy, self.angle
        )


def angle_from_shortfall(norm: Array, shortfall: Array) -> Array:
    """The angle of which ``shortfall`` is norm (1 - cos), clipped to [0, pi].

    2 atan2(sqrt(1 - rho), sqrt(1 + rho)) (ledger E81), pi/2 where ``norm`` is 0.
    """
    low = np.clip(shortfall, 0.0, 2 * norm)
    # E81: angle = 2 atan2( sqrt(|.||.| - q_xy), sqrt(|.||.| + q_xy) )
    angle = 2 * np.arctan2(np.sqrt(low), np.sqrt(2 * norm - low))
    return np.where(norm > 0, angle, np.pi / 2)


def as_points(name: str, value: Any) -> Array:
    """Finite numbers (points, inputs) in double precision."""
    try:
        points = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputTypeError(
            f"{name} must be an array of numbers. Got {type(value).__name__}."
        ) from error
    if points.ndim != 2 or points.shape[1] == 0:
        raise ShapeError(
            f"{name} must have the shape (points, inputs). Got {points.shape}; for one "
            f"input, pass {name}.reshape(-1, 1)."
        )
    if not np.isfinite(points).all():
        raise ParameterError(
            f"{name} must be finite. {int((~np.isfinite(points)).sum())} of "
            f"{points.size} values are NaN or infinite; leave out these rows."
        )
    return points


def as_pair(x: Any, y: Any) -> tuple[Array, Array]:
    """Two sets of points with the same inputs."""
    left, right = as_points("x", x), as_points("y", y)
    if left.shape[1] != right.shape[1]:
        raise ShapeError(
            f"x and y must have the same number of inputs. Got {left.shape[1]} and "
            f"{right.shape[1]}."
        )
    return left, right


def _with_bias(points: Array, weight_variance: float, bias_variance: float) -> Array:
    """(s_w x, s_b), whose inner products are the covariances."""
    column = np.full((len(points), 1), np.sqrt(bias_variance))
    return np.hstack([np.sqrt(weight_variance) * points, column])


def _angle_between(left: Array, right: Array) -> Array:
    """theory: theta = 2 atan2(|a - b|, |a + b|) of the unit vectors a, b (E81)."""
    a, b = _unit(left), _unit(right)
    return np.asarray(2 * np.arctan2(cdist(a, b), cdist(a, -b)))


def _unit(points: Array) -> Array:
    length = np.linalg.norm(points, axis=1, keepdims=True)
    return np.divide(points, length, out=np.zeros_like(points), where=length > 0)
