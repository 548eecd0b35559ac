"""What a deferral is asked to keep: a coverage, an error rate, or low costs.

.. [Clopper1934] C. J. Clopper, E. S. Pearson. The use of confidence or fiducial limits
   illustrated in the case of the binomial. Biometrika 26, 1934.
.. [Geifman2017] Y. Geifman, R. El-Yaniv. Selective classification for deep neural
   networks. NeurIPS 2017.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from caveat import _validation as validation
from caveat.decisions.ranks import covering_rank
from caveat.errors import ParameterError
from caveat.evaluation.estimates import Array, Estimate
from caveat.evaluation.selective import RiskCoverage

NOBODY, EVERYBODY = -math.inf, math.inf  # thresholds that accept no row, and all


class ThresholdChoice(NamedTuple):
    """A threshold, whether it meets the target, and what it promises in words."""

    threshold: float
    met: bool
    promise: str


class DeferralTarget(ABC):
    """Chooses the threshold on a score from rows whose outcome is known."""

    @abstractmethod
    def choose(self, curve: RiskCoverage) -> ThresholdChoice:
        """The threshold for the scores and losses of calibration rows.

        Parameters
        ----------
        curve : RiskCoverage
            Of the calibration rows.

        Returns
        -------
        ThresholdChoice
            Rows with a score of at most its threshold are accepted.
        """


@final
@dataclass(frozen=True)
class Coverage(DeferralTarget):
    """Accept a given share of the rows, the surest ones.

    Attributes
    ----------
    share : float
        In (0, 1].

    Examples
    --------
    >>> curve = RiskCoverage.from_scores([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 0])
    >>> Coverage(0.6).choose(curve).threshold  # third of four: (4 + 1) * 0.6
    0.3
    """

    share: float

    def __post_init__(self) -> None:
        if validation.positive("share", self.share) > 1.0:
            raise ParameterError(f"share must lie in (0, 1]. Got {self.share}.")

    def choose(self, curve: RiskCoverage) -> ThresholdChoice:
        n_rows = len(curve.scores)
        rank = covering_rank(n_rows, self.share)
        if rank > n_rows:
            threshold = EVERYBODY
        else:
            threshold = float(np.sort(curve.scores)[rank - 1])
        usable = int((curve.scores < math.inf).sum())
        if usable < min(rank, n_rows):
            return ThresholdChoice(
                threshold,
                False,
                f"Not met: a coverage of {self.share:.1%} asks for {rank} of {n_rows} "
                f"calibration rows, and only {usable} have a finite score.",
            )
        return ThresholdChoice(
            threshold,
            True,
            f"A new row is accepted with probability {self.share:.1%} or more, "
            f"averaged over sets of {n_rows} calibration rows drawn as it is.",
        )


@final
@dataclass(frozen=True)
class ErrorRate(DeferralTarget):
    """Keep the share of wrong rows among the accepted below a rate.

    As many rows are accepted as the calibration rows can vouch for. A number of
    thresholds, placed by rank, is tried; each has an upper limit of its error rate
    [Clopper1934]_, and the limits hold for all of them at once (ledger E114). The
    promise is one about a finite number of rows: nothing is assumed about the score,
    not even that the error rate rises with it.

    Attributes
    ----------
    rate : float
        Of errors among accepted rows, in (0, 1).
    confidence : float, default 0.95
        Share of calibration sets whose policy keeps the rate.
    n_thresholds : int, default 10
        How many are tried. More are finer, and each has to be surer.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.arange(400) / 400
    >>> errors = scores > 0.8  # right up to there, and wrong after
    >>> ErrorRate(0.05).choose(RiskCoverage.from_scores(scores, errors)).met
    True
    """

    rate: float
    confidence: float = 0.95
    n_thresholds: int = 10

    def __post_init__(self) -> None:
        validation.unit_interval("rate", self.rate)
        validation.unit_interval("confidence", self.confidence)
        validation.positive_int("n_thresholds", self.n_thresholds)

    @property
    def least_rows(self) -> int:
        """Accepted rows that are needed, if there is no error among them."""
        return math.ceil(math.log(self._risk_each) / math.log1p(-self.rate))

    def choose(self, curve: RiskCoverage) -> ThresholdChoice:
        errors = _zero_or_one(curve.losses)
        usable = int((curve.scores < math.inf).sum())
        if usable < self.least_rows:
            return ThresholdChoice(NOBODY, False, self._too_few(usable))
        limits = self._limits(curve.scores, errors)
        kept = [limit for limit in limits if limit.upper <= self.rate]
        if not kept:
            nearest = min(limits, key=_upper)
            return ThresholdChoice(NOBODY, False, self._not_met(nearest))
        best = max(kept, key=lambda limit: limit.n_accepted)
        return ThresholdChoice(best.threshold, True, self._promise(best, len(errors)))

    @property
    def _risk_each(self) -> float:
        """Probability of a wrong limit that one threshold may have."""
        return (1.0 - self.confidence) / self.n_thresholds

    def _limits(self, scores: Array, errors: Array) -> list["Limit"]:
        """A limit for each threshold: below the score of a given rank, or none."""
        order = np.sort(scores)
        last = len(scores) - 1
        ranks = np.linspace(min(self.least_rows, last), last, self.n_thresholds - 1)
        ends = [*order[np.unique(ranks.astype(int))], EVERYBODY]
        limits = []
        for end in ends:
            below = scores < end
            n_accepted, n_errors = int(below.sum()), int(errors[below].sum())
            upper = clopper_pearson(n_errors, n_accepted, self._risk_each)
            # Given the score s_(k), the rows below it are drawn from those below it.
            inside = float(np.nextafter(end, NOBODY)) if end < EVERYBODY else end
            limits.append(Limit(inside, n_accepted, n_errors, upper))
        return limits

    def _promise(self, limit: "Limit", n_rows: int) -> str:
        return (
            f"At most {self.rate:.2%} of the accepted rows are wrong, with confidence "
            f"{self.confidence:.0%}: of {n_rows} calibration rows it accepts "
            f"{limit.n_accepted}, {limit.n_errors} of them wrong, and the limit for "
            f"{self.n_thresholds} thresholds at once is {limit.upper:.2%}. This holds "
            f"for rows drawn as the calibration rows were."
        )

    def _not_met(self, limit: "Limit") -> str:
        return (
            f"Not met: no threshold keeps {self.rate:.2%} errors with confidence "
            f"{self.confidence:.0%}. The best, which accepts {limit.n_accepted} "
            f"calibration rows with {limit.n_errors} errors, keeps {limit.upper:.2%}. "
            f"All rows are deferred; ask for less, or bring more calibration rows."
        )

    def _too_few(self, usable: int) -> str:
        return (
            f"Not met: {self.least_rows} accepted rows without an error are needed to "
            f"promise {self.rate:.2%} errors with confidence {self.confidence:.0%}. "
            f"There are {usable} calibration rows with a finite score. All rows are "
            f"deferred; ask for less, or bring more calibration rows."
        )


@final
@dataclass(frozen=True)
class Costs(DeferralTarget):
    """Make the mean cost of calibration rows as low as it can be.

    Attributes
    ----------
    wrong : float
        Cost of an accepted row, per unit of its loss (of a wrong row, if losses are
        0 and 1).
    review : float
        Cost of a deferred row.

    Examples
    --------
    >>> curve = RiskCoverage.from_scores([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 0])
    >>> Costs(wrong=10.0, review=1.0).choose(curve).threshold
    0.2
    """

    wrong: float
    review: float

    def __post_init__(self) -> None:
        validation.positive("wrong", self.wrong)
        validation.positive("review", self.review)

    def choose(self, curve: RiskCoverage) -> ThresholdChoice:
        n_rows = len(curve.scores)
        allowed = curve.thresholds < math.inf
        thresholds = np.array([NOBODY, *curve.thresholds[allowed]])
        accepted = np.array([0, *curve.counts[allowed]])
        lost = np.array([0.0, *(curve.risk * curve.counts)[allowed]])
        # E115: cost(t) = (wrong sum_accepted loss_i + review n_deferred) / n
        cost = (self.wrong * lost + self.review * (n_rows - accepted)) / n_rows
        best = len(cost) - 1 - int(cost[::-1].argmin())  # of equals, accept more
        promise = self._promise(curve, best, cost)
        return ThresholdChoice(float(thresholds[best]), True, promise)

    def _promise(self, curve: RiskCoverage, best: int, cost: Array) -> str:
        threshold = NOBODY if best == 0 else curve.thresholds[best - 1]
        each = np.where(
            curve.scores <= threshold, self.wrong * curve.losses, self.review
        )
        return (
            f"No guarantee. Costs {Estimate.of_mean(each)} per calibration row, which "
            f"flatters it, as it was chosen on them; accepting all would cost "
            f"{cost[-1]:.3g} and deferring all {cost[0]:.3g}."
        )


class Limit(NamedTuple):
    """Errors below a threshold, and an upper limit of their rate."""

    threshold: float
    n_accepted: int
    n_errors: int
    upper: float


def clopper_pearson(n_errors: int, n_rows: int, risk: float) -> float:
    """Upper limit of an error rate, wrong with a probability of at most ``risk``.

    Parameters
    ----------
    n_errors, n_rows : int
        Errors seen, and rows looked at.
    risk : float
        One minus the confidence, in (0, 1).

    Returns
    -------
    float
        The rate at which so few errors have probability ``risk`` (ledger E114); 1 if
        no row is right.

    Examples
    --------
    >>> round(clopper_pearson(0, 59, 0.05), 4)  # 1 - 0.05^(1/59)
    0.0495
    """
    if n_errors >= n_rows:
        return 1.0
    # E114: Pr(Binomial(n, upper) <= errors) = risk; risk = (1 - confidence) / m each,
    #       so that all m limits hold at once with the confidence
    return float(betaincinv(n_errors + 1, n_rows - n_errors, 1.0 - risk))


def _upper(limit: Limit) -> float:
    return limit.upper


def _zero_or_one(losses: Array) -> NDArray[np.float64]:
    if not bool(np.isin(losses, (0.0, 1.0)).all()):
        raise ParameterError(
            f"An error rate needs losses of 0 or 1. Got {losses.min():.3g} to "
            f"{losses.max():.3g}. For regression say what an error is: "
            f"loss=caveat.evaluation.off_by_more_than(tolerance)."
        )
    return losses
