"""Answer where the model is sure, and hand the rest to somebody who knows."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from caveat._summary import Summarised, TextSummary
from caveat.decisions.defer_targets import NOBODY, DeferralTarget, ThresholdChoice
from caveat.errors import CaveatWarning, InputTypeError
from caveat.evaluation.estimates import Array, Estimate
from caveat.evaluation.losses import losses_of
from caveat.evaluation.scores import (
    Score,
    default_score,
    score_of,
    scores_of_rows,
)
from caveat.evaluation.selective import RiskCoverage
from caveat.evaluation.targets import named_labels
from caveat.predictive import Predictive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from caveat.evaluation.selective_displays import RiskCoverageDisplay


@final
@dataclass(frozen=True, eq=False)
class Deferral:
    """Which rows are accepted, which are deferred, and why.

    Attributes
    ----------
    scores : array, shape (rows,)
        How uncertain each row is.
    threshold : float
        Up to which rows are accepted.
    score_name : str
        What the scores are called in ``reasons``.
    """

    scores: Array
    threshold: float
    score_name: str

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def accepted(self) -> NDArray[np.bool_]:
        """True for each row that is answered; an infinite score never is."""
        return (self.scores <= self.threshold) & (self.scores < math.inf)

    @property
    def deferred(self) -> NDArray[np.bool_]:
        """True for each row that is handed on."""
        return ~self.accepted

    @property
    def reasons(self) -> tuple[str, ...]:
        """For each row, in words, why it is accepted or deferred."""
        return tuple(
            self._reason(float(score), bool(accepted))
            for score, accepted in zip(self.scores, self.accepted, strict=True)
        )

    def _reason(self, score: float, accepted: bool) -> str:
        if self.threshold == NOBODY:
            return "deferred: the target cannot be met, so no row is accepted"
        what = f"{self.score_name} {score:.4g}"
        if accepted:
            return f"accepted: {what} is at most {self.threshold:.4g}"
        if score == math.inf:
            return f"deferred: {what} is never accepted"
        return f"deferred: {what} is above {self.threshold:.4g}"

    def __repr__(self) -> str:
        accepted = int(self.accepted.sum())
        return (
            f"Deferral: {len(self)} rows, {accepted} accepted, "
            f"{len(self) - accepted} deferred ({self.score_name} up to "
            f"{self.threshold:.4g})"
        )


@final
@dataclass(frozen=True, eq=False)
class DeferralPolicy(Summarised):
    """A threshold on a score, with what it was chosen from and what it promises.

    Attributes
    ----------
    score : str or callable
        By which rows are ranked.
    target : DeferralTarget
        What was asked for.
    choice : ThresholdChoice
        The threshold, whether the target is met, and the promise.
    curve : RiskCoverage
        Of the calibration rows.
    """

    score: Score
    target: DeferralTarget
    choice: ThresholdChoice
    curve: RiskCoverage

    @property
    def threshold(self) -> float:
        """Rows with a score of at most this are accepted; -inf accepts none."""
        return self.choice.threshold

    @property
    def met(self) -> bool:
        """Whether the target can be met. If not, ``promise`` says why."""
        return self.choice.met

    @property
    def promise(self) -> str:
        """What is promised about new rows, in words."""
        return self.choice.promise

    def summary(self) -> TextSummary:
        state = "met" if self.met else "not met: no row is accepted"
        return TextSummary(
            f"DeferralPolicy: {self.target}, {state}",
            {
                "score": str(getattr(self.score, "__name__", self.score)),
                "threshold": f"{self.threshold:.4g}",
                "accepted, calibration rows": f"{self.coverage:.1%}",
                "mean loss of these": f"{self.risk:.4g}",
                "promise": self.promise,
            },
        )

    @property
    def aurc(self) -> Estimate:
        """Area under the risk-coverage curve of the calibration rows."""
        return self.curve.aurc

    @property
    def coverage(self) -> float:
        """Share of the calibration rows that is accepted."""
        return float(self.decide(self.curve.scores).accepted.mean())

    @property
    def risk(self) -> float:
        """Mean loss of the calibration rows that are accepted; NaN if none is."""
        accepted = self.decide(self.curve.scores).accepted
        return float(self.curve.losses[accepted].mean()) if accepted.any() else math.nan

    def apply(self, predictive: Predictive) -> Deferral:
        """Accept or defer each row of a predictive.

        Parameters
        ----------
        predictive : Predictive
            Of new rows, made as that of the calibration rows was.

        Returns
        -------
        Deferral
        """
        return self.decide(score_of(predictive, self.score))

    def decide(self, scores: Any) -> Deferral:
        """Accept or defer by scores that are known already.

        Parameters
        ----------
        scores : array, shape (rows,)
            Of the same kind as those of the calibration rows.

        Returns
        -------
        Deferral
        """
        return Deferral(scores_of_rows(scores), self.threshold, self._score_name)

    def plot(self, ax: "Axes | None" = None, **style: Any) -> "RiskCoverageDisplay":
        """Draw the risk-coverage curve, with a mark where the policy stands.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; a new figure by default.
        **style
            As for ``RiskCoverageDisplay.plot``.

        Returns
        -------
        RiskCoverageDisplay
            Drawn.
        """
        from caveat.evaluation.selective_displays import RiskCoverageDisplay

        display = RiskCoverageDisplay(self.curve).plot(ax, **style)
        if self.coverage > 0.0:
            display.ax_.plot(
                self.coverage, self.risk, "o", color="black", label="policy", zorder=3
            )
        return display

    def __repr__(self) -> str:
        return (
            f"DeferralPolicy: accepts {self._score_name} up to {self.threshold:.4g}, "
            f"{self.coverage:.1%} of {len(self.curve.scores)} calibration rows\n"
            f"  {self.promise}"
        )

    @property
    def _score_name(self) -> str:
        if isinstance(self.score, str):
            return self.score.replace("_", " ")
        return getattr(self.score, "__name__", "score").replace("<lambda>", "score")


def defer(
    predictive: Predictive,
    y: Any,
    *,
    target: DeferralTarget,
    score: Score | None = None,
    loss: Any = None,
    classes: Sequence[Any] | None = None,
) -> DeferralPolicy:
    """Choose which rows to answer and which to defer, on rows whose outcome is known.

    Parameters
    ----------
    predictive : Predictive
        Of calibration rows, which trained nothing; one output or label per row.
    y : array or Tensor, shape (rows,)
        What was observed there.
    target : DeferralTarget
        :class:`ErrorRate`, :class:`Coverage` or :class:`Costs`.
    score : str or callable, optional
        As for :func:`caveat.decisions.score_of`; by default the least confidence of a
        classification and the standard deviation of a regression.
    loss : callable or array of shape (rows,), optional
        A function of the predictive and ``y``, or the losses themselves. By default 1
        for a wrong class, and the absolute error of a regression.
    classes : sequence, optional
        Names of the classes, in the order of their numbers, if ``y`` holds names.

    Returns
    -------
    DeferralPolicy
        Which tells with ``met`` and ``promise`` what it keeps, and whose ``apply``
        decides about new rows. If the target cannot be met, it warns, and no row is
        accepted.

    Examples
    --------
    >>> import torch
    >>> from caveat.decisions import ErrorRate
    >>> from caveat.predictive import CategoricalPredictive
    >>> generator = torch.Generator().manual_seed(0)
    >>> logits = 3 * torch.randn(1, 1000, 2, generator=generator)  # one draw
    >>> held_out = CategoricalPredictive.from_logits(logits)
    >>> y = torch.multinomial(held_out.probs, 1, generator=generator).squeeze(1)
    >>> policy = defer(held_out, y, target=ErrorRate(0.05))
    >>> policy.met, policy.risk < 0.05 < float((held_out.label != y).double().mean())
    (True, True)
    >>> policy.apply(held_out[:2]).reasons[0]
    'deferred: least confidence 0.4801 is above 0.07287'
    """
    if not isinstance(target, DeferralTarget):
        raise InputTypeError(
            f"target must be an ErrorRate, a Coverage or Costs, such as "
            f"ErrorRate(0.02). Got {target!r}."
        )
    y = named_labels(predictive, y, classes)
    chosen = default_score(predictive) if score is None else score
    scores = score_of(predictive, chosen)
    curve = RiskCoverage.from_scores(scores, losses_of(predictive, y, loss))
    choice = target.choose(curve)
    if not choice.met:
        warnings.warn(choice.promise, CaveatWarning, stacklevel=2)
    return DeferralPolicy(chosen, target, choice, curve)
