"""What calibration rows promise about new ones: the ranks of their scores."""

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from caveat import _validation as validation
from caveat.decisions.ranks import covering_rank, least_rows
from caveat.errors import ParameterError
from caveat.evaluation.estimates import Array


@final
@dataclass(frozen=True)
class Guarantee:
    """The limit of a score that new rows keep with a given probability.

    Attributes
    ----------
    level : float
        Probability that was asked for.
    limit : float
        The score of the calibration row of rank ``rank`` (ledger E113).
    rank, n_rows : int
        Its rank among the calibration rows, and their number.
    """

    level: float
    limit: float
    rank: int
    n_rows: int

    @classmethod
    def of(cls, scores: Array, level: float) -> Self:
        """From the scores of calibration rows, higher being worse.

        Parameters
        ----------
        scores : array, shape (rows,)
            Without NaN.
        level : float
            Strictly between 0 and 1.

        Returns
        -------
        Guarantee
        """
        level, n_rows = validation.unit_interval("level", level), len(scores)
        rank = covering_rank(n_rows, level)
        if rank > n_rows:
            raise ParameterError(
                f"A level of {level} needs at least {least_rows(level)} calibration "
                f"rows. Got {n_rows}; bring more, or ask for a lower level."
            )
        return cls(level, float(np.sort(scores)[rank - 1]), rank, n_rows)

    def coverage_range(self, confidence: float = 0.9) -> tuple[float, float]:
        """Between which bounds the coverage of this one calibration set lies.

        Parameters
        ----------
        confidence : float, default 0.9
            Probability of the range, over calibration sets.

        Returns
        -------
        low, high : float
            If scores do not tie, the coverage has the law Beta(k, n + 1 - k); ties
            raise it.
        """
        tail = 0.5 * (1.0 - validation.unit_interval("confidence", confidence))
        law = beta(self.rank, self.n_rows + 1 - self.rank)
        return float(law.ppf(tail)), float(law.ppf(1.0 - tail))

    @property
    def promise(self) -> str:
        """What is promised about new rows, in words."""
        low, high = self.coverage_range()
        return (
            f"A new row is covered with probability {self.level:.1%} or more, averaged "
            f"over sets of {self.n_rows} calibration rows drawn as it is; for one such "
            f"set the probability is mostly {low:.1%} to {high:.1%}. It is an average "
            f"over rows, not a promise about each."
        )


@final
@dataclass(frozen=True)
class CalibrationScores:
    """The scores of all calibration rows, from which any level can be served.

    Attributes
    ----------
    values : tuple of float
        In order; higher is worse.
    """

    values: tuple[float, ...]

    @classmethod
    def of(cls, scores: Array) -> Self:
        """From scores in any order."""
        return cls(tuple(np.sort(scores).tolist()))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"CalibrationScores({len(self)} rows)"

    def guarantee(self, level: float) -> Guarantee:
        """What is promised at a level; an error if there are too few rows for it."""
        return Guarantee.of(np.array(self.values), level)

    def n_below(self, scores: Array) -> NDArray[np.int64]:
        """How many calibration rows did better than each score."""
        return np.searchsorted(np.array(self.values), scores, side="left")

    def n_up_to(self, scores: Array) -> NDArray[np.int64]:
        """How many did no worse."""
        return np.searchsorted(np.array(self.values), scores, side="right")
