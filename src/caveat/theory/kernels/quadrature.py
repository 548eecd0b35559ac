"""The expectation of a product by a two-dimensional trapezoid rule, pair by pair.

For a few pairs (q_xx, q_yy, q_xy), and to check series and closed forms by another
way. Gram matrices are summed by ``Smooth`` at a small part of the cost.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from caveat.errors import ParameterError
from caveat.theory.kernels.covariances import Array

_REACH = 8.5  # beyond, N(0, 1) has 2e-17 of its mass
_STEPS = tuple(0.4 / 2**k for k in range(6))
_GOAL = 1e-13  # of the change by halving the step, relative
_BUDGET = 1 << 21  # evaluations held in memory at a time: 16 MB


def expected_product(
    function: Callable[[Array], Array],
    variance_x: ArrayLike,
    variance_y: ArrayLike,
    covariance: ArrayLike,
) -> Array:
    """E sigma(u) sigma(v) for Gaussian pairs (u, v) and a smooth function sigma.

    The plain trapezoid rule in g_1, g_2 on [-8.5, 8.5]², u = sqrt(q_xx) g_1,
    v = sqrt(q_yy) (rho g_1 + sqrt(1 - rho²) g_2) (ledger E77). Its step is halved from
    0.4 until E sigma² at the largest variance stands to 13 digits. A pair costs
    (17/step)² evaluations of the function, 2000 at step 0.4 and 120,000 at 0.05; the
    memory is bounded whatever the number of pairs.

    Parameters
    ----------
    function : callable
        sigma, smooth; takes and returns arrays.
    variance_x, variance_y, covariance : array_like
        q_xx, q_yy and q_xy, of shapes that broadcast.

    Returns
    -------
    array
        Of the broadcast shape.

    Examples
    --------
    >>> round(float(expected_product(np.tanh, 25.0, 25.0, 20.0)), 12)
    0.564357033441
    """
    parts = np.broadcast_arrays(*map(_numbers, (variance_x, variance_y, covariance)))
    xx, yy, xy = (part.ravel() for part in parts)
    grid = _grid(function, max(xx.max(initial=0), yy.max(initial=0)))
    step = max(1, _BUDGET // len(grid) ** 2)
    total = np.empty(len(xx))
    for start in range(0, len(xx), step):
        part = slice(start, start + step)
        total[part] = _trapezoid(function, xx[part], yy[part], xy[part], grid)
    return total.reshape(parts[0].shape)


def _trapezoid(
    function: Callable[[Array], Array], xx: Array, yy: Array, xy: Array, grid: Array
) -> Array:
    norm = np.sqrt(xx * yy)
    rho = np.divide(xy, norm, out=np.zeros_like(xy), where=norm > 0).clip(-1, 1)
    weights = _weights(grid)
    u = np.multiply.outer(np.sqrt(xx), grid)
    lean = np.multiply.outer(np.sqrt(yy) * rho, grid)
    rest = np.multiply.outer(np.sqrt(yy * (1 - rho) * (1 + rho)), grid)
    # E77: sum_ij w_i w_j sigma(u_i) sigma(v_ij)
    inner = function(lean[:, :, None] + rest[:, None, :]) @ weights
    return (function(u) * inner) @ weights


def _grid(function: Callable[[Array], Array], variance: float) -> Array:
    """Nodes so close that halving their step changes nothing."""
    means = [_square_mean(function, variance, _nodes(step)) for step in _STEPS]
    for step, mean, finer in zip(_STEPS, means, means[1:], strict=False):
        if abs(mean - finer) <= _GOAL * abs(finer):
            return _nodes(step)
    raise ParameterError(
        f"function must be smooth at the scale {variance**0.5:.3g} of its argument. "
        f"E sigma² still changes from {means[-2]!r} to {means[-1]!r} at the step "
        f"{_STEPS[-1]}; use a closed form for kinked functions, or scale the inputs."
    )


def _square_mean(
    function: Callable[[Array], Array], variance: float, grid: Array
) -> float:
    return float(np.square(function(np.sqrt(variance) * grid)) @ _weights(grid))


def _nodes(step: float) -> Array:
    count = int(np.ceil(_REACH / step))
    return np.arange(-count, count + 1, dtype=np.float64) * step


def _weights(grid: Array) -> Array:
    step = grid[1] - grid[0]
    return step * np.exp(-0.5 * np.square(grid)) / np.sqrt(2 * np.pi)


def _numbers(value: ArrayLike) -> Array:
    numbers = np.asarray(value, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise ParameterError("Variances and covariances must be finite numbers.")
    return numbers
