"""What chance alone would do to a calibrated model: bands for few and many rows."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, chi2, norm

from caveat.evaluation.estimates import Array

PROBABILITY = 0.95  # of a band
_TAILS = (0.5 * (1.0 - PROBABILITY), 0.5 * (1.0 + PROBABILITY))
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
    low, high = (binom.ppf(q, n_rows, share) / n_rows for q in _TAILS)
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
        Exact for up to 2,000 rows; beyond, normal with a correction for skewness, as
        where nearly all rows are sure, and rather too wide than too narrow.
    """
    n_rows = len(probs)
    if n_rows > _EXACT_ROWS:
        low, high = _wide_counts(probs)
    else:
        cumulated = _count_probs(probs).cumsum()
        low, high = (int((cumulated < q - 1e-12).sum()) for q in _TAILS)
    return low / n_rows, high / n_rows


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
    low, high = (np.sqrt(chi2.ppf(q, n_rows) / n_rows) for q in _TAILS)
    return np.asarray(low), np.asarray(high)


def uniform_limit(n_rows: int) -> float:
    """The largest gap of an empirical distribution that chance explains (95 %).

    Kolmogorov's limit, 1.36 / sqrt(rows); at a few chosen levels it is cautious.
    """
    return 1.358 / math.sqrt(n_rows)


def _wide_counts(probs: Array) -> tuple[int, int]:
    """Quantiles of the number of rows that count, by Cornish and Fisher."""
    each = probs * (1.0 - probs)
    centre, variance = float(probs.sum()), float(each.sum())
    if variance <= 0.0:
        return round(centre), round(centre)
    std = math.sqrt(variance)
    # the third moment of a sum of trials is sum p (1 - p) (1 - 2 p)
    skewness = float((each * (1.0 - 2.0 * probs)).sum()) / std**3
    score = float(norm.ppf(_TAILS[1]))
    bend = skewness * (score**2 - 1.0) / 6.0
    low = math.ceil(centre + std * (bend - score) - 0.5)
    high = math.floor(centre + std * (bend + score) + 0.5)
    return max(low, 0), min(high, len(probs))


def _count_probs(probs: Array) -> Array:
    """Probability of each number of rows that count; shape (rows + 1,)."""
    law = np.ones(1)
    for share in probs:
        law = np.convolve(law, [1.0 - share, share])
    return law
