"""The noise of observations, found on rows that nobody learned from.

Its standard deviation is a factor times exp(strength * log scale of the row): a model
of the size of held-out residuals, as far as that makes them more probable; its tails
are those of a Student-t, if that does.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv

from caveat.estimators.tables.normals import NormalSource
from caveat.estimators.tables.weights import TAILS, student_log_density
from caveat.evaluation.precision import search_scale

Array = NDArray[np.float64]

SMALLEST = 1e-3  # of the noise, in standard units of y
_LARGEST = 1e3
_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
_COST = 1.5  # nats that tails, or a scale that depends on the row, must gain
_ENOUGH = 4000  # rows
_FEW = 60


@dataclass(frozen=True)
class NoiseLaw:
    """The noise of one output, in standard units.

    Attributes
    ----------
    std : float
        Its scale where the log scale of a row is 0.
    strength : float
        How far the log scale of a row counts.
    df : float
        Degrees of freedom; infinite for a Gaussian.
    """

    std: float
    strength: float
    df: float

    def scales(self, log_scales: Array) -> Array:
        """Its scale at rows of these log scales."""
        found = self.std * np.exp(self.strength * log_scales)
        return np.maximum(found, SMALLEST)

    def factors(self, number: int, rng: NormalSource) -> Array:
        """Factors on the precision, one per draw: a Student-t as a mixture."""
        if math.isinf(self.df):
            return np.ones(number)
        levels = (np.arange(number) + 0.5) / number
        found = np.empty(number)
        order = np.argsort(rng.standard_normal((number,)))
        found[order] = gammaincinv(0.5 * self.df, levels) / (0.5 * self.df)
        return found


def find_noise(
    errors: Array, variance: Array, log_scales: Array, weight: Array
) -> NoiseLaw:
    """The law under which held-out errors are most probable.

    Parameters
    ----------
    errors : array, shape (rows,)
        Of the mean, in standard units.
    variance : array, shape (rows,)
        Of the draws there.
    log_scales : array, shape (rows,)
        Predicted by a model that has not learned from the row; about 0 on average.
    weight : array, shape (rows,)
        Of the rows.

    Returns
    -------
    NoiseLaw
    """
    some = np.linspace(0, len(errors) - 1, min(len(errors), _ENOUGH)).astype(int)
    errors, variance = errors[some], variance[some]
    log_scales, weight = log_scales[some], weight[some]
    strengths = _STRENGTHS if np.ptp(log_scales) > 0 else (0.0,)

    def value(law: NoiseLaw) -> float:
        total = np.sqrt(np.square(law.scales(log_scales)) + variance)
        log = student_log_density(errors / total, law.df) - np.log(total)
        return float(weight @ log)

    def best_of(df: float, strength: float) -> tuple[float, NoiseLaw]:
        found = search_scale(
            lambda std: value(NoiseLaw(std, strength, df)),
            low=SMALLEST,
            high=_LARGEST,
            tolerance=0.01,
        )
        price = _COST * (not math.isinf(df)) + _COST * (strength > 0)
        law = NoiseLaw(found.scale, strength, df)
        return found.log_likelihood - price, law

    tried = [best_of(df, 0.0) for df in TAILS]
    if len(strengths) > 1:
        dfs = sorted({max(tried, key=lambda t: t[0])[1].df, np.inf, 5.0})
        tried += [best_of(df, s) for df in dfs for s in strengths[1:]]
    law = max(tried, key=lambda t: t[0])[1]
    if len(errors) >= _FEW:
        return law
    # Of few rows the scale itself is uncertain: the tails of a Student-t say so.
    return replace(law, df=min(law.df, max(len(errors) - 1.0, TAILS[0])))
