"""The continuous ranked probability score: an absolute error that knows about spread.

CRPS(F, y) = E|X - y| - E|X - X'| / 2, with X and X' independent and distributed as F.

.. [Gneiting2007] T. Gneiting, A. E. Raftery. Strictly proper scoring rules, prediction
   and estimation. Journal of the American Statistical Association 102, 2007.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy.integrate import quad_vec
from torch import Tensor

from caveat._optional import require
from caveat.evaluation.estimates import Array, Estimate
from caveat.evaluation.targets import Regression, observed_values
from caveat.predictive import (
    GaussianPredictive,
    StudentMixturePredictive,
    StudentPredictive,
)

_TAIL = 9.0  # standard deviations; a Gaussian has less than 1e-18 beyond
_STEPS = 2.0  # points of the integral per standard deviation of the noise
_AT_ONCE = 2**22  # numbers held at once
_ACCURACY = 1e-6  # of the integrals that have no closed form


def crps(predictive: Regression, y: Any) -> Estimate:
    """Continuous ranked probability score of what was observed; lower is better.

    Parameters
    ----------
    predictive : GaussianPredictive or a Student-t one
        Of the rows. A Gaussian one needs its draws.
    y : array or Tensor, shape (rows,) or that of the mean
        What was observed.

    Returns
    -------
    Estimate
        In the units of y; of each output on its own, averaged. Mixtures are scored as
        mixtures, not as a Gaussian of the same moments.

    Examples
    --------
    >>> import torch
    >>> predictive = GaussianPredictive.from_draws(
    ...     torch.zeros(300, 2), precision=1.0
    ... )
    >>> crps(predictive, [0.0, 2.0]).value  # (0.2337 + 1.4528) / 2
    0.843...
    """
    return Estimate.of_mean(crps_of_rows(predictive, y).mean(1))


def crps_of_rows(predictive: Regression, y: Any) -> Array:
    """The score of each row and output; shape (rows, outputs)."""
    values = observed_values(predictive, y)
    observed = values.double().numpy(force=True).reshape(len(values), -1)
    if isinstance(predictive, GaussianPredictive):
        return _of_gaussians(predictive, observed.reshape(-1)).reshape(observed.shape)
    if isinstance(predictive, StudentPredictive):
        return _of_student(predictive, observed)
    assert isinstance(predictive, StudentMixturePredictive)
    return _of_student_mixture(predictive, values).reshape(observed.shape)


def _of_gaussians(predictive: GaussianPredictive, y: Array) -> Array:
    """Of mixtures of T Gaussians: by pairs, or by an integral if that is shorter."""
    centres = predictive.draws.double().flatten(1).T.numpy(force=True)
    precision = predictive.draw_precision.double().flatten(1).T
    widths = precision.rsqrt().numpy(force=True)  # shape: (rows * outputs, draws)
    n_points, n_draws = _n_points(centres, widths), centres.shape[1]
    if n_points >= n_draws:
        return _by_pairs(centres, widths, y)
    parts = _parts(len(y), n_points * n_draws)
    return np.concatenate(
        [_by_integral(centres[p], widths[p], y[p], n_points) for p in parts]
    )


def _by_pairs(centres: Array, widths: Array, y: Array) -> Array:
    rules = require("scoringrules", extra="metrics")
    # E105: (1/T) sum_t A(y - f_t, s_t²) - (1/2T²) sum_tu A(f_t - f_u, s_t² + s_u²),
    #       A(m, s²) = E|N(m, s²)| = m (2 Phi(m/s) - 1) + 2 s phi(m/s)
    parts = [
        rules.crps_mixnorm(y[p], centres[p], widths[p], backend="numpy")
        for p in _parts(len(y), centres.shape[1] ** 2)
    ]
    return np.concatenate(parts)


def _by_integral(centres: Array, widths: Array, y: Array, n_points: int) -> Array:
    """As ``_by_pairs``, in T times ``n_points`` steps instead of T times T."""
    low = (centres - _TAIL * widths).min(1)
    high = (centres + _TAIL * widths).max(1)
    step = (high - low) / (n_points - 1)
    grid = low[:, None] + step[:, None] * np.arange(n_points)
    cdf = np.stack(
        [_ndtr((grid[:, [k]] - centres) / widths).mean(1) for k in range(n_points)],
        1,
    )
    # E106: E|X - X'| / 2 = int F (1 - F) dx; the trapezoid rule is exact to rounding
    #       at half a standard deviation of the narrowest component, as F is smooth
    spread = (cdf * (1.0 - cdf)).sum(1) * step
    return _mean_distance(centres, widths, y) - spread


def _mean_distance(centres: Array, widths: Array, y: Array) -> Array:
    """E|X - y| of the mixture of each row."""
    gap = y[:, None] - centres
    scores = gap / widths
    bell = np.exp(-0.5 * scores**2) / math.sqrt(2.0 * math.pi)
    return (gap * (2.0 * _ndtr(scores) - 1.0) + 2.0 * widths * bell).mean(1)


def _n_points(centres: Array, widths: Array) -> int:
    reach = (centres + _TAIL * widths).max(1) - (centres - _TAIL * widths).min(1)
    return int(np.ceil(_STEPS * reach / widths.min(1)).max()) + 1


def _parts(n_rows: int, per_row: int) -> Iterator[slice]:
    size = max(_AT_ONCE // per_row, 1)
    return (slice(start, start + size) for start in range(0, n_rows, size))


def _ndtr(scores: Array) -> Array:
    return torch.special.ndtr(torch.from_numpy(scores)).numpy()


def _of_student(predictive: StudentPredictive, y: Array) -> Array:
    rules = require("scoringrules", extra="metrics")
    location, scale, df = (
        v.double().numpy(force=True)[:, None]
        for v in (predictive.location, predictive.scale, predictive.df)
    )
    return rules.crps_t(y, df, location, scale, backend="numpy")


def _of_student_mixture(predictive: StudentMixturePredictive, y: Tensor) -> Array:
    """By integration on both sides of y, where the integrand is smooth."""
    unit = predictive.interval(0.5)
    scale = (unit[1] - unit[0]).double()

    def squares(step: float) -> Array:
        left = predictive.cdf(y - (step * scale).to(y)).double()
        right = 1.0 - predictive.cdf(y + (step * scale).to(y)).double()
        return ((left.square() + right.square()) * scale).numpy(force=True)

    # E107: CRPS = int_{-inf}^y F² dx + int_y^inf (1 - F)² dx
    found, _ = quad_vec(
        squares, 0.0, math.inf, epsabs=0.0, epsrel=_ACCURACY, norm="max"
    )
    return found
