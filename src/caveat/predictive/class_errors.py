"""Monte Carlo errors of class probabilities and of what is told by them."""

from typing import final

import torch
from torch import Tensor

from caveat._strata import SLICE
from caveat.predictive.moments import Moments, merge
from caveat.predictive.strata import Design, Slices

_NAMES = ("entropy", "expected_entropy", "mutual_information")


@final
class ClassErrors:
    """Errors of means over draws that come in order.

    The entropy of an average is no average, but changes with it as one does: by
    -sum_c log(pbar_c) p_tc. For pbar there the mean of the first draws is taken, so
    that nothing need be kept; near the largest entropy, where the slope is small, that
    makes the error of the entropy too large, by up to a half or so.

    Parameters
    ----------
    design : Design or None
        How the draws were stratified; None if they are independent.
    """

    def __init__(self, design: Design | None) -> None:
        self._probs = Slices(design, one_unit=True)
        self._measures = Slices(design)
        self._moments: Moments | None = None
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

    def of_probs(self, moments: Moments) -> Tensor:
        """Of the mean probabilities, whose moments are given."""
        return self._probs.mean_error(moments)

    def of_measures(self) -> dict[str, Tensor]:
        """Of entropy, expected entropy and mutual information, (batch, *extra) each."""
        assert self._moments is not None
        errors = self._measures.mean_error(self._moments)
        return dict(zip(_NAMES, errors.unbind(-1), strict=True))
