"""A number measured on some rows, with the standard error those rows leave it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]

_RESAMPLES = 200  # of the rows; the standard error is then right to about 5 %


@final
@dataclass(frozen=True)
class Estimate:
    """A metric and its standard error over rows.

    Attributes
    ----------
    value : float
        The metric on the rows at hand.
    error : float
        How far it would move on other rows of the same kind: one standard error.
        Infinite if a single row was seen.

    Examples
    --------
    >>> found = Estimate.of_mean([1.0, 2.0, 3.0])
    >>> print(found)
    2.00 ± 0.58
    >>> float(found)
    2.0
    """

    value: float
    error: float

    @classmethod
    def of_mean(cls, values: object) -> Self:
        """The mean of one number per row, and sd / sqrt(rows).

        Parameters
        ----------
        values : array, shape (rows,)
            At least one.

        Returns
        -------
        Estimate
        """
        numbers = np.asarray(values, dtype=np.float64)
        return cls(float(numbers.mean()), mean_error(numbers))

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        digits = _digits(self.error)
        return f"{self.value:.{digits}f} ± {self.error:.{digits}f}"


def mean_error(values: Array) -> float:
    """Standard error of a mean; infinite for one value."""
    if len(values) < 2:
        return math.inf
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def bootstrap_error(statistic: Callable[..., float], *columns: Array) -> float:
    """Standard error of a statistic of rows, by drawing rows again.

    Parameters
    ----------
    statistic : callable
        Of arrays of shape (rows,).
    *columns : array, shape (rows,)
        What it is computed from. The same rows give the same answer.

    Returns
    -------
    float
        Infinite for one row.
    """
    n_rows = len(columns[0])
    if n_rows < 2:
        return math.inf
    generator = np.random.default_rng(0)
    found = np.empty(_RESAMPLES)
    for turn in range(_RESAMPLES):
        rows = generator.integers(n_rows, size=n_rows)
        found[turn] = statistic(*(column[rows] for column in columns))
    return float(found.std(ddof=1))


def _digits(error: float) -> int:
    """Decimals that show two digits of the error, six at most; three if it has none."""
    if not (math.isfinite(error) and error > 0.0):
        return 3
    return min(6, max(0, 1 - math.floor(math.log10(error))))
