"""How implausible a class is, and the sets of classes that are not.

.. [Sadinle2019] M. Sadinle, J. Lei, L. Wasserman. Least ambiguous set-valued
   classifiers with bounded error levels. JASA 114, 2019.
.. [Romano2020] Y. Romano, M. Sesia, E. Candès. Classification with valid and adaptive
   coverage. NeurIPS 2020.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from caveat._random import mixed, random_bits, stream_key, unit_interval
from caveat.decisions.ranks import slack
from caveat.errors import InputTypeError, ShapeError
from caveat.evaluation.estimates import Array
from caveat.predictive import ClassificationPredictive

_CELLS = 2**12


class SetScore(ABC):
    """A number that says how implausible each class of a row is."""

    def calibration_scores(
        self, predictive: ClassificationPredictive, y: Tensor
    ) -> Array:
        """How implausible the observed class of each row was.

        Parameters
        ----------
        predictive : ClassificationPredictive
            One label per row.
        y : Tensor of int64, shape (rows,)
            The observed classes.

        Returns
        -------
        array, shape (rows,)
            Higher is less plausible.
        """
        scores = self._scores(_probs(predictive))
        return scores[np.arange(len(scores)), y.numpy(force=True)]

    def sets(self, predictive: ClassificationPredictive, limit: float) -> Any:
        """All classes whose score is at most ``limit``.

        Parameters
        ----------
        predictive : ClassificationPredictive
            One label per row.
        limit : float
            Of the score.

        Returns
        -------
        array of bool, shape (rows, classes)
        """
        scores = self._scores(_probs(predictive))
        return scores <= limit + slack(predictive.probs.dtype)

    @abstractmethod
    def _scores(self, probs: Array) -> Array:
        """Of all classes, shape (rows, classes)."""


@final
@dataclass(frozen=True)
class LeastAmbiguous(SetScore):
    """One minus the probability of the class [Sadinle2019]_ (ledger E119).

    The sets are the smallest on average, if the probabilities are right; easy rows may
    be covered more often than hard ones, and a set may be empty.
    """

    def _scores(self, probs: Array) -> Array:
        # E119: s_c = 1 - p_c
        return 1.0 - probs


@final
@dataclass(frozen=True)
class AdaptiveSets(SetScore):
    """Probability of the classes that are more probable, and of this one [Romano2020]_.

    With r the rank of class c by probability, s_c = p_(1) + … + p_(r-1) + u p_(r)
    (ledger E116), u = 1 or random. Sets are larger where rows are harder, which evens
    out coverage over rows.

    Attributes
    ----------
    seed : int or None, default None
        With a seed u is uniform on (0, 1), and the level is hit exactly if no two rows
        have the same probabilities. It is a hash of those of the row, so that a row has
        the same set beside whichever others it is asked for. Without a seed u is 1,
        sets are somewhat larger, and the most probable class is always in them.
    """

    seed: int | None = None

    def __post_init__(self) -> None:
        if self.seed is not None and not isinstance(self.seed, int):
            raise InputTypeError(f"seed must be an int or None. Got {self.seed!r}.")

    def sets(self, predictive: ClassificationPredictive, limit: float) -> Any:
        """All classes whose score is at most ``limit``.

        Parameters
        ----------
        predictive : ClassificationPredictive
            One label per row.
        limit : float
            Of the score.

        Returns
        -------
        array of bool, shape (rows, classes)
        """
        chosen = super().sets(predictive, limit)
        if self.seed is None:
            top = predictive.label.numpy(force=True)
            chosen[np.arange(len(chosen)), top] = True
        return chosen

    def _scores(self, probs: Array) -> Array:
        order = np.argsort(-probs, axis=1, kind="stable")
        ranked = np.take_along_axis(probs, order, 1)
        # E116: s_c = p_(1) + … + p_(r-1) + u p_(r), r the rank of class c
        before = ranked.cumsum(1) - ranked
        sums = before + self._shares(probs) * ranked
        scores = np.empty_like(sums)
        np.put_along_axis(scores, order, sums, 1)
        return scores

    def _shares(self, probs: Array) -> Array:
        """u of each row, shape (rows, 1): by what the row is, not by its place.

        A score must be one function of a row and its class, the same for calibration
        rows and for new ones, or rows that come one at a time all have the same u.
        """
        if self.seed is None:
            return np.ones((len(probs), 1))
        key = stream_key(self.seed, "adaptive sets")
        words = torch.from_numpy(_coarse(probs).view(np.int64).copy())
        places = random_bits(key, range(1), (probs.shape[1],))
        return unit_interval(mixed(mixed(words + places).sum(1, keepdim=True))).numpy()


def _coarse(probs: Array) -> Array:
    """With 12 binary digits, which other batches leave as they are, but for a few."""
    mantissa, exponent = np.frexp(probs)
    return np.ldexp(np.rint(mantissa * _CELLS), exponent) / _CELLS


def _probs(predictive: ClassificationPredictive) -> Array:
    if not isinstance(predictive, ClassificationPredictive):
        raise InputTypeError(
            f"Sets of classes are for a ClassificationPredictive. "
            f"Got {type(predictive).__name__}."
        )
    if predictive.probs.ndim != 2:
        raise ShapeError(
            f"The predictive must have one label per row, probabilities of shape "
            f"(rows, classes). Got {tuple(predictive.probs.shape)}."
        )
    return predictive.probs.double().numpy(force=True)
