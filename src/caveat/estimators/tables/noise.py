"""The noise of observations, found on rows that nobody learned from.

Its standard deviation is a factor times exp(strength * log scale of the row): a model
of the size of held-out residuals, as far as that makes them more probable; its tails
are those of a Student-t, if that does. A law whose intervals hold fewer of these rows
than they say is widened until they do: where y repeats a value (many zeros, say), a
density that is high there and low elsewhere is the more probable one, and no answer.
Rows far beyond all tails (a target that is 0 but for one row in fifty) get a share of
the draws to themselves: a mixture of some hundred draws ends where its widest one does.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, logsumexp, stdtrit

from caveat.estimators.tables.normals import NormalSource
from caveat.estimators.tables.weights import TAILS, student_log_density
from caveat.evaluation.precision import search_scale

Array = NDArray[np.float64]

SMALLEST = 1e-3  # of the noise, in standard units of y, where there is any
_LEAST = 1e-7  # where there is none
_LARGEST = 1e3
_STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25)
_COST = 1.5  # nats that tails, or a scale that depends on the row, must gain
_ENOUGH = 4000  # rows
_FEW = 60
_LEVELS = (0.8, 0.9, 0.95)  # of the intervals that must hold what they say
_SURE = 2.0  # standard errors
_HALVINGS = 30
_DRAWS = 400  # of an estimator by default: tails end with the widest of them
_REACH = 4.0  # widths of that one, beyond which a row is far
_FEWEST_FAR, _LEAST_FAR, _MOST_FAR = 3, 0.005, 0.25  # rows, shares of them
_FAR_COST = 3.0  # nats that a share for far rows must gain


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
        return np.maximum(found, self.least)

    @property
    def least(self) -> float:
        """The smallest scale of a row."""
        return min(SMALLEST, self.std)

    def factors(self, number: int, rng: NormalSource) -> Array:
        """Factors on the precision, one per draw: a Student-t as a mixture."""
        if math.isinf(self.df):
            return np.ones(number)
        found = np.empty(number)
        order = np.argsort(rng.standard_normal((number,)))
        found[order] = self.quantiles((np.arange(number) + 0.5) / number)
        return found

    def quantiles(self, levels: Array) -> Array:
        """Of the factors, which rise with the level; of finite ``df``."""
        return np.asarray(gammaincinv(0.5 * self.df, levels) / (0.5 * self.df))

    def log_density(self, z: Array) -> Array:
        """Of errors over the scale of their row."""
        return student_log_density(z, self.df)


@dataclass(frozen=True)
class FarNoise(NoiseLaw):
    """A law with tails, and a share of the draws for rows that these do not reach.

    Attributes
    ----------
    share : float
        Of the draws.
    width : float
        Their scale, as a multiple of that of the row.
    """

    share: float
    width: float

    def quantiles(self, levels: Array) -> Array:
        """The lowest ones are of the share."""
        return np.where(
            levels < self.share, self.width**-2.0, super().quantiles(levels)
        )

    def log_density(self, z: Array) -> Array:
        """Of both parts."""
        far = student_log_density(z / self.width, math.inf) - math.log(self.width)
        near = super().log_density(z)
        return np.logaddexp(math.log1p(-self.share) + near, math.log(self.share) + far)


def find_noise(
    errors: Array, variance: Array, log_scales: Array, weight: Array, step: float = 0.0
) -> NoiseLaw:
    """The law under which held-out errors are most probable, if its intervals are true.

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
    step : float, default 0.0
        To which y was rounded, in standard units: a density finer than that is of no
        use.

    Returns
    -------
    NoiseLaw
    """
    some = np.linspace(0, len(errors) - 1, min(len(errors), _ENOUGH)).astype(int)
    held = _Held(errors[some], variance[some], log_scales[some], weight[some])
    strengths = _STRENGTHS if np.ptp(held.log_scales) > 0 else (0.0,)
    least = min(SMALLEST, max(step / math.sqrt(12.0), _LEAST))
    tried = [held.best(df, 0.0, least) for df in TAILS]
    if len(strengths) > 1:
        dfs = sorted({max(tried, key=lambda t: t[0])[1].df, np.inf, 5.0})
        tried += [held.best(df, s, least) for df in dfs for s in strengths[1:]]
    law = max(tried, key=lambda t: t[0])[1]
    if len(errors) < _FEW:
        # Of few rows the scale itself is uncertain: the tails of a Student-t say so.
        law = replace(law, df=min(law.df, max(len(errors) - 1.0, TAILS[0])))
    return held.reaching(law)


@dataclass(frozen=True, eq=False)
class _Held:
    """Rows that nobody learned from, as of :func:`find_noise`."""

    errors: Array
    variance: Array
    log_scales: Array
    weight: Array

    def best(self, df: float, strength: float, least: float) -> tuple[float, NoiseLaw]:
        """The best law of these tails, and what it is worth."""
        price = _COST * (not math.isinf(df)) + _COST * (strength > 0)

        def value(std: float) -> float:
            return self._log_likelihood(NoiseLaw(std, strength, df))

        found = search_scale(value, low=SMALLEST, high=_LARGEST, tolerance=0.01)
        if found.at_edge and found.scale < 1.0 and least < SMALLEST:
            found = search_scale(value, low=least, high=SMALLEST, tolerance=0.01)
        law = self._covering(NoiseLaw(found.scale, strength, df))
        return self._log_likelihood(law) - price, law

    def reaching(self, law: NoiseLaw) -> NoiseLaw:
        """The law, or one with a share of draws for rows that its tails do not reach.

        What a Student-t says of such a row is not what is answered: of its mixture of
        draws only the widest counts there, and that one falls as a Gaussian does.
        """
        if math.isinf(law.df):
            return law
        widths = 1.0 / np.sqrt(law.quantiles((np.arange(_DRAWS) + 0.5) / _DRAWS))
        is_far = np.abs(self.errors) > _REACH * widths[0] * self._spread(law)
        total, own = float(self.weight.sum()), self.weight[is_far]
        share = float(own.sum()) / total
        # Of fewer, as of mistyped ones, the variance of all others is not to be made.
        if len(own) < _FEWEST_FAR or not _LEAST_FAR <= share <= _MOST_FAR:
            return law
        z = (self.errors / law.scales(self.log_scales))[is_far]
        width = math.sqrt(float(own @ np.square(z) / own.sum()))
        found = FarNoise(law.std, law.strength, law.df, share, width)
        parts = student_log_density(z[:, None] / widths, math.inf) - np.log(widths)
        before = logsumexp(parts, axis=1) - math.log(_DRAWS)
        gain = own @ (found.log_density(z) - before)
        gain += (total - own.sum()) * math.log1p(-share)
        return found if gain > _FAR_COST else law

    def _log_likelihood(self, law: NoiseLaw) -> float:
        total = self._spread(law)
        log = student_log_density(self.errors / total, law.df) - np.log(total)
        return float(self.weight @ log)

    def _spread(self, law: NoiseLaw) -> Array:
        return np.sqrt(np.square(law.scales(self.log_scales)) + self.variance)

    def _covering(self, law: NoiseLaw) -> NoiseLaw:
        """The law, or the narrowest wider one whose intervals hold enough rows."""
        total = self.weight.sum()
        shares = np.square(self.weight).sum() / total**2
        levels = np.array(_LEVELS)
        chance = _SURE * np.sqrt(levels * (1.0 - levels) * shares)
        if self._holds(law, levels - chance):
            return law
        low, high = math.log(law.std), math.log(_LARGEST)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            if self._holds(replace(law, std=math.exp(middle)), levels):
                high = middle
            else:
                low = middle
        return replace(law, std=math.exp(high))

    def _holds(self, law: NoiseLaw, least: Array) -> bool:
        """Whether central intervals hold at least these shares of the rows."""
        ends = stdtrit(law.df, 0.5 + 0.5 * np.array(_LEVELS))
        inside = np.abs(self.errors / self._spread(law))[:, None] <= ends
        return bool((self.weight @ inside >= least * self.weight.sum()).all())
