"""The joint entropy of the labels of several rows, from draws with shared masks.

Draw t of all rows is one function, so given t the labels are independent and

    p(y_1, …, y_k) = (1/T) Σ_t Π_i p_t(y_i).

A *configuration* is one value of (y_1, …, y_k). It is kept as what it says about the
draws: the posterior weight w_t of each. All that is asked for follows from these
weights, and growing the batch by a row multiplies each configuration by its labels.
With masks of their own for each row the product would be wrong: labels would be
independent, and near duplicates would seem to be worth as much as two rows.

.. [Kirsch2019] A. Kirsch, J. van Amersfoort, Y. Gal. BatchBALD: efficient and diverse
   batch acquisition for deep Bayesian active learning. NeurIPS 2019.
"""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
import torch
from torch import Tensor

from caveat import _validation as check
from caveat._random import Seed, as_seed
from caveat.errors import InputTypeError, ShapeError
from caveat.predictive import ClassificationPredictive

MAX_CONFIGURATIONS = 1000


@final
@dataclass(frozen=True, eq=False)
class Configurations:
    """Labels that a batch of rows may have, and what each says about the draws.

    Attributes
    ----------
    chance : Tensor, shape (configurations,)
        Probability of each; they sum to 1.
    weights : Tensor, shape (configurations, draws)
        Posterior weights of the draws, given the labels; each row sums to 1.
    """

    chance: Tensor
    weights: Tensor

    @classmethod
    def empty(cls, n_draws: int) -> Self:
        """Of no rows: one configuration, which says nothing about the draws."""
        weights = torch.full((1, n_draws), 1.0 / n_draws, dtype=torch.float64)
        return cls(weights.new_ones(1), weights)

    def conditional_entropy(self, probs: Tensor) -> Tensor:
        """H(y | labels of the batch) of further rows (ledger E120).

        Parameters
        ----------
        probs : Tensor, shape (draws, rows, classes)
            Of the further rows.

        Returns
        -------
        Tensor, shape (rows,)
            In nats; each row by itself.
        """
        n_draws, n_rows, n_classes = probs.shape
        given = self.weights @ probs.reshape(n_draws, -1)
        # E120: H(y | batch) = Σ_config p(config) H(Σ_t w_t(config) p_t(y))
        inner = torch.special.entr(given).view(-1, n_rows, n_classes).sum(-1)
        return self.chance @ inner

    def grow(self, probs: Tensor, limit: int, uniform: float) -> Self:
        """Add a row; beyond ``limit``, keep a sample of the configurations.

        Parameters
        ----------
        probs : Tensor, shape (draws, classes)
            Of the row.
        limit : int
            The most configurations to keep.
        uniform : float
            In (0, 1); where the sample starts.

        Returns
        -------
        Configurations
            Of the larger batch.
        """
        joint = self.weights[:, None, :] * probs.T  # (configurations, classes, draws)
        given = joint.sum(-1)
        chance = (self.chance[:, None] * given).reshape(-1)
        possible = chance > 0
        weights = (joint / given.unsqueeze(-1)).flatten(0, 1)[possible]
        chance = chance[possible] / chance.sum()
        if len(chance) <= limit:
            return type(self)(chance, weights)
        kept = _systematic(chance, limit, uniform)
        return type(self)(chance.new_full((limit,), 1.0 / limit), weights[kept])


def joint_entropy(
    predictive: ClassificationPredictive,
    *,
    max_configurations: int = MAX_CONFIGURATIONS,
    seed: Seed = 0,
) -> float:
    """Entropy of the labels of all rows together, in nats [Kirsch2019]_ (ledger E121).

    Parameters
    ----------
    predictive : ClassificationPredictive
        With draws that were kept, made with masks shared by the rows.
    max_configurations : int
        Exact if the labels can have at most so many configurations, classes to the
        power of rows; beyond, this many are sampled.
    seed : int, torch.Generator or None, default 0
        Of the sample.

    Returns
    -------
    float

    Examples
    --------
    Two rows whose labels always agree carry the information of one:

    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> one, two = [30.0, 0.0], [0.0, 30.0]
    >>> logits = torch.tensor([[one, one, one], [two, two, one]])  # 2 draws, 3 rows
    >>> predictive = CategoricalPredictive.from_logits(logits)
    >>> round(joint_entropy(predictive[:2]), 3), round(joint_entropy(predictive[:1]), 3)
    (0.693, 0.693)
    """
    probs = shared_probs(predictive)
    limit = check.positive_int("max_configurations", max_configurations)
    generator = np.random.default_rng(as_seed(seed) % 2**63)
    state, total = Configurations.empty(len(probs)), 0.0
    for row in range(probs.shape[1]):
        # E121: H(y_1, …, y_k) = Σ_i H(y_i | y_1, …, y_{i-1})
        total += float(state.conditional_entropy(probs[:, row : row + 1]))
        state = state.grow(probs[:, row], limit, generator.random())
    return total


def shared_probs(predictive: Any) -> Tensor:
    """Probabilities of each draw, (draws, rows, classes), in float64."""
    if not isinstance(predictive, ClassificationPredictive):
        raise InputTypeError(
            f"A joint entropy needs a ClassificationPredictive. Got "
            f"{type(predictive).__name__}; for regressions take Diverse."
        )
    logits = predictive.draws
    if logits.ndim != 3:
        raise ShapeError(
            f"A joint entropy needs one label per row, draws of shape (draws, rows, "
            f"classes). Got {tuple(logits.shape)}."
        )
    return logits.double().softmax(-1)


def _systematic(chance: Tensor, number: int, uniform: float) -> Tensor:
    """Places hit by evenly spaced points: i is hit number · chance_i times on average.

    So an average over the sample is unbiased, with less spread than independent draws.
    """
    points = (torch.arange(number, dtype=chance.dtype) + uniform) / number
    found = torch.searchsorted(chance.cumsum(0), points.to(chance.device))
    return found.clamp(max=len(chance) - 1)
