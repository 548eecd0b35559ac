"""What chance alone would do to a calibrated model: bands for few and many rows."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chi2, norm

from caveat.evaluation.estimates import Array

PROBABILITY = 0.95  # of a band
_EXACT_ROWS = 2000  # up to which a sum of unequal trials is worked out exactly


def share_band(share: Any, n_rows: Any) -> tuple[Array, Array]:
    """Where a share of rows lies with 95 %, each row counting with ``share``.

    Parameters
    ----------
    share : float or array
        Probability that a row counts.
    n_rows : int or array
        How many rows there are.

    Returns
    -------
    low, high : array
        Exact, from the binomial distribution.
    """
    tail = 0.5 * (1.0 - PROBABILITY)
    low, high = (binom.ppf(q, n_rows, share) / n_rows for q in (tail, 1.0 - tail))
    return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64)


def mean_band(probs: Array) -> tuple[float, float]:
    """Where the share of rows that count lies with 95 %, each with its own probability.

    Parameters
    ----------
    probs : array, shape (rows,)
        Probability that each row counts.

    Returns
    -------
    low, high : float
        Exact for up to 2,000 rows, by the normal approximation beyond.
    """
    n_rows, tail = len(probs), 0.5 * (1.0 - PROBABILITY)
    if n_rows > _EXACT_ROWS:
        centre = float(probs.mean())
        reach = norm.ppf(1.0 - tail) * math.sqrt(float((probs * (1 - probs)).sum()))
        return max(0.0, centre - reach / n_rows), min(1.0, centre + reach / n_rows)
    cumulated = _count_probs(probs).cumsum()
    low, high = (
        int((cumulated < q - 1e-12).sum()) / n_rows for q in (tail, 1.0 - tail)
    )
    return low, high


def spread_band(n_rows: NDArray[np.int64]) -> tuple[Array, Array]:
    """Where observed over predicted spread lies with 95 % for Gaussian errors.

    Parameters
    ----------
    n_rows : array of int
        Rows the observed spread is from.

    Returns
    -------
    low, high : array
        Factors on the predicted spread.
    """
    tail = 0.5 * (1.0 - PROBABILITY)
    low, high = (np.sqrt(chi2.ppf(q, n_rows) / n_rows) for q in (tail, 1.0 - tail))
    return np.asarray(low), np.asarray(high)


def uniform_limit(n_rows: int) -> float:
    """The largest gap of an empirical distribution that chance explains (95 %).

    Kolmogorov's limit, 1.36 / sqrt(rows); at a few chosen levels it is cautious.
    """
    return 1.358 / math.sqrt(n_rows)


def _count_probs(probs: Array) -> Array:
    """Probability of each number of rows that count; shape (rows + 1,)."""
    law = np.ones(1)
    for share in probs:
        law = np.convolve(law, [1.0 - share, share])
    return law
