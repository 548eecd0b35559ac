"""The one search for a precision: a positive number that makes rows most probable.

The log density of held-out rows as a function of one positive scale (a precision, a
factor on precisions, a temperature) may have several local maxima, so a grid of its
logarithm is looked at first, and only then the best stretch of it is refined.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from caveat import _validation as validation
from caveat.errors import ParameterError

GRID = 25  # points of the first look
TOLERANCE = 1e-3  # of the logarithm of the scale

Objective = Callable[[float], float]


class BestScale(NamedTuple):
    """The scale under which held-out rows are most probable.

    Attributes
    ----------
    scale : float
        The best one; NaN if no scale of the range has a finite log density.
    log_likelihood : float
        What it reaches; -inf if there is none.
    at_edge : bool
        Whether it lies at an end of the range: the rows do not determine it.
    """

    scale: float
    log_likelihood: float
    at_edge: bool = False


def search_scale(
    objective: Objective,
    *,
    low: float,
    high: float,
    first_look: Objective | None = None,
    tolerance: float = TOLERANCE,
) -> BestScale:
    """Maximise a mean log density over a positive scale (ledger E111).

    Parameters
    ----------
    objective : callable
        From a scale to the mean log density of the rows.
    low, high : float
        The range, 0 < low < high.
    first_look : callable, optional
        A cheaper objective with about the same maximum, for the grid; by default
        ``objective`` itself.
    tolerance : float
        How well the logarithm of the scale is found.

    Returns
    -------
    BestScale

    Examples
    --------
    >>> found = search_scale(lambda k: -(math.log(k / 4.0) ** 2), low=1e-3, high=1e3)
    >>> round(found.scale, 2), found.at_edge
    (4.0, False)
    """
    ends = _log_range(low, high)
    grid = np.linspace(*ends, GRID)
    look = objective if first_look is None else first_look
    losses = np.array([-look(math.exp(point)) for point in grid])
    if not np.isfinite(losses).any():
        return BestScale(math.nan, -math.inf)
    best = int(np.nanargmin(losses))
    found = minimize_scalar(
        lambda point: -objective(math.exp(point)),
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, GRID - 1)]),
        method="bounded",
        options={"xatol": tolerance},
    )
    nearest = min(found.x - ends[0], ends[1] - found.x)
    at_edge = bool(nearest < 2 * tolerance)
    return BestScale(math.exp(found.x), -float(found.fun), at_edge)


def _log_range(low: float, high: float) -> tuple[float, float]:
    low, high = validation.positive("low", low), validation.positive("high", high)
    if not low < high:
        raise ParameterError(f"low must be below high. Got {low} and {high}.")
    return math.log(low), math.log(high)
