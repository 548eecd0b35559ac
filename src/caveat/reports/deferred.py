"""What is gained by handing the rows a model is least sure of to a person."""

import math
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from scipy.stats import hypergeom

from caveat.evaluation.estimates import Estimate
from caveat.evaluation.selective import RiskCoverage

_CHANCE = 0.025  # on either side


@final
@dataclass(frozen=True)
class Deferred:
    """What handing the least certain rows to a person does.

    Attributes
    ----------
    asked : float
        Share of rows to be handed on, at most.
    n_deferred : int
        Rows that are: those of the same score stay together.
    threshold : float
        The score up to which rows are kept.
    before, after : float
        Mean loss of all rows, and of those that are kept.
    after_error : float
        Standard error of ``after``.
    advantage : Estimate
        Mean loss of deferred rows less that of kept ones; NaN without either.
    worse_by_chance, better_by_chance : float
        Probability that rows drawn at random would be as much worse, or better.
    """

    asked: float
    n_deferred: int
    threshold: float
    before: float
    after: float
    after_error: float
    advantage: Estimate
    worse_by_chance: float
    better_by_chance: float

    @classmethod
    def of(cls, curve: RiskCoverage, asked: float) -> Self:
        """From a risk-coverage curve.

        Parameters
        ----------
        curve : RiskCoverage
            Of all rows.
        asked : float
            Share of rows to be handed on.

        Returns
        -------
        Deferred
        """
        n_rows = len(curve.scores)
        kept = n_rows - math.floor(round(n_rows * asked, 9))
        place = int(np.searchsorted(curve.counts, kept))
        advantage = _advantage(curve, place)
        return cls(
            asked,
            n_rows - int(curve.counts[place]),
            float(curve.thresholds[place]),
            float(curve.risk[-1]),
            float(curve.risk[place]),
            float(curve.risk_error[place]),
            advantage,
            *_by_chance(curve, place, advantage),
        )

    @property
    def gain(self) -> float:
        """Share of the mean loss that is saved; NaN where there is none."""
        return 1.0 - self.after / self.before if self.before > 0.0 else math.nan

    @property
    def is_shown(self) -> bool:
        """Whether deferred rows are worse than others, by more than chance."""
        return self.worse_by_chance < _CHANCE

    @property
    def is_reversed(self) -> bool:
        """Whether they are better, by more than chance."""
        return self.better_by_chance < _CHANCE


def _advantage(curve: RiskCoverage, place: int) -> Estimate:
    """Mean loss of rows handed on less that of the others.

    Its error is that of rows chosen at random: what it would be if scores and losses
    had nothing to do with each other.
    """
    n_rows, kept = len(curve.scores), int(curve.counts[place])
    deferred = n_rows - kept
    if deferred == 0 or n_rows < 3:
        return Estimate(math.nan, math.inf)
    after, before = float(curve.risk[place]), float(curve.risk[-1])
    # the whole is the mean of its parts: n before = kept after + deferred mean
    handed = max(n_rows * before - kept * after, 0.0) / deferred
    variance = float(curve.risk_error[-1]) ** 2 * n_rows
    chance = variance * (1.0 / deferred + 1.0 / kept)
    return Estimate(handed - after, math.sqrt(chance))


def _by_chance(
    curve: RiskCoverage, place: int, advantage: Estimate
) -> tuple[float, float]:
    """Whether rows drawn at random would be as much worse, and as much better.

    Errors that are counted are few, often, and then far from Gaussian: they are drawn
    without replacement.
    """
    if not math.isfinite(advantage.error):
        return 1.0, 1.0
    n_rows, kept = len(curve.scores), int(curve.counts[place])
    if not ((curve.losses == 0.0) | (curve.losses == 1.0)).all():
        if advantage.error == 0.0:
            return 1.0, 1.0
        size = advantage.value / advantage.error / math.sqrt(2.0)
        return 0.5 * math.erfc(size), 0.5 * math.erfc(-size)
    wrong = round(float(curve.risk[-1]) * n_rows)
    handed = wrong - round(float(curve.risk[place]) * kept)
    law = hypergeom(n_rows, wrong, n_rows - kept)
    return float(law.sf(handed - 1)), float(law.cdf(handed))
