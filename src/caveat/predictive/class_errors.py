"""Monte Carlo errors of class probabilities and of what is told by them."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from caveat._strata import SLICE
from caveat.predictive.moments import Moments, merge
from caveat.predictive.strata import Evidences, Seen, Slices, Stratification

_NEAR = 0.05  # probabilities so near to 0 or 1 may be made by a few rare draws
_WIDEST = 4.0  # largest variance of their logarithms that is believed
_TINY = 1e-30
_RARE = 1e-4  # p (1 - p) below which a class is judged by its absolute error
_MEASURES = ("entropy", "expected_entropy", "mutual_information")


@final
@dataclass(frozen=True, eq=False)
class ClassesSeen:
    """What is kept of the draws of some rows for the errors of what they say.

    Attributes
    ----------
    probs : Seen
        Of class probabilities, (batch, *extra, classes).
    measures : Seen
        Of entropy, expected entropy and mutual information, (batch, *extra, 3).
    """

    probs: Seen
    measures: Seen

    @property
    def evidence(self) -> Evidences:
        """What these rows say of how additive things are."""
        return self.probs.evidence, self.measures.evidence

    def to(self, dtype: torch.dtype) -> "ClassesSeen":
        """In another type, to hold less."""
        return ClassesSeen(self.probs.to(dtype), self.measures.to(dtype))

    def errors(self, evidence: Evidences | None = None) -> dict[str, Tensor]:
        """Errors by the name of what they are of; ``evidence`` is that of all rows."""
        probs, measures = self.evidence if evidence is None else evidence
        found = self.measures.mean_error(measures).unbind(-1)
        named = dict(zip(_MEASURES, found, strict=True))
        return {"mean": self.probs.mean_error(probs), **named}


@final
class ClassErrors:
    """Errors of means over draws that come in order.

    The entropy of an average is no average, but changes with it as one does: by
    -sum_c log(pbar_c) p_tc. For pbar there the mean of the first draws is taken, so
    that nothing need be kept; near the largest entropy, where the slope is small, that
    makes the error of the entropy too large, by up to a half or so.

    A mean probability near 0 or 1 may owe most to a few rare draws, and without one of
    them the sample variance is far too small. There the variance that stratified draws
    are judged by is at least that of a log-normal number with the mean and variance of
    log p (or of log(1 - p)), at most p (1 - p).

    Parameters
    ----------
    design : Stratification or None
        How the draws were stratified; None if they are independent.
    """

    def __init__(self, design: Stratification | None) -> None:
        self._probs = Slices(design, probabilities=True)
        self._measures = Slices(design)
        self._moments: Moments | None = None
        self._stratified = design is not None
        self._logs: Moments | None = None  # of the nearer of log p and log(1 - p)
        self._surprise: Tensor | None = None  # -log of the first mean of probabilities

    def add(self, probs: Tensor, entropies: Tensor) -> None:
        """Take in the next draws: (draws, batch, *extra, classes), and without."""
        self._probs.add(probs)
        if self._surprise is None:
            least = torch.finfo(probs.dtype).tiny
            self._surprise = -probs[:SLICE].mean(0).clamp(min=least).log()
        total = (probs * self._surprise).sum(-1)
        measures = torch.stack([total, entropies, total - entropies], -1)
        self._measures.add(measures)
        new = Moments.of(measures)
        self._moments = new if self._moments is None else merge(self._moments, new)
        if self._stratified:
            nearest = torch.minimum(probs, 1.0 - probs).clamp(min=_TINY)
            new = Moments.of(nearest.log())
            self._logs = new if self._logs is None else merge(self._logs, new)

    def seen(self, probs: Moments) -> ClassesSeen:
        """What is kept of all draws; ``probs`` are the moments of probabilities."""
        assert self._moments is not None
        return ClassesSeen(
            self._probs.seen(probs, _least(probs.mean, self._logs)),
            self._measures.seen(self._moments),
        )


def relative_to_labels(errors: Tensor, probs: Tensor) -> float:
    """The largest error of a probability p, relative to sqrt(p (1 - p)).

    Where p (1 - p) is below 1e-4, that is taken in its place.
    """
    scale = (probs * (1.0 - probs)).clamp(min=_RARE).sqrt()
    return float((errors / scale).max())


def _least(mean: Tensor, logs: Moments | None) -> Tensor | None:
    """The variance of a log-normal number, where probabilities are near 0 or 1."""
    if logs is None:
        return None
    # E99: Var p >= exp(2m + v) (exp(v) - 1), log p ~ N(m, v)
    width = (logs.scatter / max(logs.count - 1, 1)).clamp(max=_WIDEST)
    centre = (logs.mean + width / 2).exp().clamp(max=0.5)
    found = torch.minimum(centre.square() * width.expm1(), mean * (1.0 - mean))
    return torch.where(torch.minimum(mean, 1.0 - mean) < _NEAR, found, 0.0)
