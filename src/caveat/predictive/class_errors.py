"""Monte Carlo errors of class probabilities and of what is told by them."""

from collections.abc import Iterator
from copy import deepcopy
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
    -sum_c log(pbar_c) p_tc. For pbar there the mean of the slices of draws before is
    taken, so that nothing need be kept. Near the largest entropy the slope is small,
    and that of a single slice may be 0 by chance, or several times the right one.

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
        self._surprise: Tensor | None = None  # -log of the mean over earlier slices
        self._first: list[tuple[Tensor, Tensor]] = []  # until there is a whole slice
        self._total: Tensor | None = None  # of probabilities
        self._count = 0

    def add(self, probs: Tensor, entropies: Tensor) -> None:
        """Take in the next draws: (draws, batch, *extra, classes), and without."""
        self._probs.add(probs)
        if self._surprise is None:  # a first slice that is not whole has to wait
            self._first.append((probs, entropies))
            if sum(len(part) for part, _ in self._first) >= SLICE:
                self._begin()
        else:
            self._measure(probs, entropies)
        if self._stratified:
            nearest = torch.minimum(probs, 1.0 - probs).clamp(min=_TINY)
            new = Moments.of(nearest.log())
            self._logs = new if self._logs is None else merge(self._logs, new)

    def _begin(self) -> None:
        """Measure the first draws, by their own mean."""
        probs, entropies = (torch.cat(one) for one in zip(*self._first, strict=True))
        self._first = []
        self._surprise = _surprise(probs[:SLICE].mean(0))
        self._measure(probs, entropies)

    def _measure(self, probs: Tensor, entropies: Tensor) -> None:
        total = torch.cat([(part * of).sum(-1) for part, of in self._surprises(probs)])
        measures = torch.stack([total, entropies, total - entropies], -1)
        self._measures.add(measures)
        new = Moments.of(measures)
        self._moments = new if self._moments is None else merge(self._moments, new)

    def _surprises(self, probs: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Draws of one slice each, with -log of the mean of the slices before it."""
        while len(probs):
            if self._total is not None and self._count % SLICE == 0:
                self._surprise = _surprise(self._total / self._count)
            assert self._surprise is not None
            part = probs[: SLICE - self._count % SLICE]
            probs, total = probs[len(part) :], part.sum(0)
            self._total = total if self._total is None else self._total + total
            self._count += len(part)
            yield part, self._surprise

    def seen(self, probs: Moments) -> ClassesSeen:
        """What is kept of all draws; ``probs`` are the moments of probabilities."""
        if self._first:
            own = deepcopy(self)  # more draws may come
            own._begin()
            return own.seen(probs)
        assert self._moments is not None
        return ClassesSeen(
            self._probs.seen(probs, _least(probs.mean, self._logs)),
            self._measures.seen(self._moments),
        )


def _surprise(probs: Tensor) -> Tensor:
    return -probs.clamp(min=torch.finfo(probs.dtype).tiny).log()


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
