"""Batches spread out in the manner of k-means++, weighted by a score.

.. [Arthur2007] D. Arthur, S. Vassilvitskii. k-means++: the advantages of careful
   seeding. SODA 2007.
.. [Ash2020] J. T. Ash, C. Zhang, A. Krishnamurthy, J. Langford, A. Agarwal. Deep batch
   active learning by diverse, uncertain gradient lower bounds. ICLR 2020.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from caveat.decisions.acquisition.choices import checked_number
from caveat.decisions.scores import Score, score_of
from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.predictive import ClassificationPredictive, Predictive

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


def disagreement(predictive: Predictive) -> Array:
    """Where the draws put each row, relative to their mean (ledger E123).

    Rows are near each other if under every draw they deviate from their means alike:
    if learning one label would move the other's prediction as well.

    Parameters
    ----------
    predictive : Predictive
        With draws that were kept, made with masks shared by the rows. For others pass
        ``features=`` to :class:`Diverse`.

    Returns
    -------
    array, shape (rows, draws · outputs)
        The squared length of a row is the variance of its draws, of probabilities for
        a classification, summed over outputs.
    """
    if not isinstance(predictive, Predictive):
        raise InputTypeError(
            f"disagreement needs a caveat Predictive with draws. Got "
            f"{type(predictive).__name__}; pass features= to Diverse."
        )
    values = predictive.draws.double()
    if isinstance(predictive, ClassificationPredictive):
        values = values.softmax(-1)
    # E123: φ_t(x) = (p_t(x) - pbar(x)) / √T
    centred = (values - values.mean(0)) / len(values) ** 0.5
    return centred.transpose(0, 1).reshape(len(predictive), -1).numpy(force=True)


@final
@dataclass(frozen=True)
class Diverse:
    """Rows with high scores that are far from each other.

    Each row is drawn with a chance proportional to its score times the squared
    distance to the nearest row chosen before ([Arthur2007]_, [Ash2020]_; ledger E124);
    a duplicate of a chosen row has no chance.

    Attributes
    ----------
    score : str or callable
        Not negative, such as ``bald`` or ``epistemic_variance``.
    features : callable, default :func:`disagreement`
        From the predictive to an array (rows, features) in which distances are taken.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> draws = torch.tensor([[-2.0, -2.0, 1.0], [2.0, 2.0, 1.5]])
    >>> predictive = GaussianPredictive.from_draws(draws, precision=1.0)
    >>> sorted(Diverse("std").choose(predictive, 2).tolist()) in ([0, 2], [1, 2])
    True
    """

    score: Score
    features: Callable[[Any], Any] = disagreement

    def choose(self, predictive: Predictive, n_rows: int, *, seed: int = 0) -> Rows:
        """Rows in the order of choice; chances are drawn with the seed."""
        number = checked_number(n_rows, predictive)
        weight = _weights(score_of(predictive, self.score))
        points = _points(self.features(predictive), len(predictive))
        generator = np.random.default_rng(seed)
        distance = np.ones(len(points))
        chosen: list[int] = []
        for _ in range(number):
            # E124: Pr(x) ∝ score(x) · min_{c chosen} |φ(x) - φ(c)|²
            row = _drawn(weight * distance, weight, chosen, generator)
            own = np.square(points - points[row]).sum(1)
            distance = own if not chosen else np.minimum(distance, own)
            chosen.append(row)
        return np.array(chosen)


def _drawn(
    chance: Array, weight: Array, chosen: list[int], generator: np.random.Generator
) -> int:
    """A row with these chances; if all left have none, the one of highest weight."""
    chance = chance.copy()
    chance[chosen] = 0.0
    total = chance.sum()
    if total > 0:
        return int(generator.choice(len(chance), p=chance / total))
    left = weight.copy()
    left[chosen] = -1.0
    return int(left.argmax())


def _weights(scores: Array) -> Array:
    if not np.isfinite(scores).all() or (scores < 0).any():
        raise ParameterError(
            f"The score of Diverse must be finite and not negative, as chances are "
            f"proportional to it. Got {scores.min():.3g} to {scores.max():.3g}."
        )
    return scores


def _points(features: Any, n_rows: int) -> Array:
    points = np.asarray(features, dtype=np.float64)
    if points.ndim < 2 or len(points) != n_rows:
        raise ShapeError(
            f"features must return an array (rows, features) with {n_rows} rows. "
            f"Got {points.shape}."
        )
    return points.reshape(n_rows, -1)
