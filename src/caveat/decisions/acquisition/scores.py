"""What a label of one row is worth: the usual acquisition functions.

Each takes a predictive and returns one number per row, higher is better to label.

.. [Houlsby2011] N. Houlsby, F. Huszár, Z. Ghahramani, M. Lengyel. Bayesian active
   learning for classification and preference learning. arXiv 1112.5745, 2011.
.. [Gal2017] Y. Gal, R. Islam, Z. Ghahramani. Deep Bayesian active learning with image
   data. ICML 2017.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from caveat.decisions.scores import checked_scores, score_of
from caveat.errors import InputTypeError
from caveat.predictive import (
    ClassificationPredictive,
    RegressionPredictive,
)

Array = NDArray[np.float64]


def bald(predictive: ClassificationPredictive) -> Array:
    """What the label would tell about the weights [Houlsby2011]_ (ledger E10).

    Parameters
    ----------
    predictive : ClassificationPredictive
        Of the candidates.

    Returns
    -------
    array, shape (rows,)
        Mutual information in nats: large where draws are sure but disagree.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> agree, differ = [3.0, 0.0], [0.0, 3.0]
    >>> logits = torch.tensor([[agree, agree], [agree, differ]])  # 2 draws, 2 rows
    >>> bald(CategoricalPredictive.from_logits(logits)).round(2)
    array([0. , 0.5])
    """
    return score_of(predictive, "mutual_information")


def entropy(predictive: ClassificationPredictive) -> Array:
    """All uncertainty about the label, in nats (ledger E8).

    Parameters
    ----------
    predictive : ClassificationPredictive
        Of the candidates.

    Returns
    -------
    array, shape (rows,)
        From 0 to the logarithm of the number of classes.
    """
    return score_of(predictive, "entropy")


def variation_ratio(predictive: ClassificationPredictive) -> Array:
    """Share of sampled labels that are not the most frequent one (ledger E11).

    Parameters
    ----------
    predictive : ClassificationPredictive
        Of the candidates.

    Returns
    -------
    array, shape (rows,)
        From 0 to below 1.
    """
    return score_of(predictive, "variation_ratio")


def least_confidence(predictive: ClassificationPredictive) -> Array:
    """One minus the probability of the most probable class.

    Parameters
    ----------
    predictive : ClassificationPredictive
        Of the candidates.

    Returns
    -------
    array, shape (rows,)
        From 0 to below 1.
    """
    return score_of(predictive, "least_confidence")


def predictive_variance(predictive: RegressionPredictive) -> Array:
    """Variance of a new observation, summed over the outputs of a row (ledger E2).

    Parameters
    ----------
    predictive : RegressionPredictive
        Of the candidates.

    Returns
    -------
    array, shape (rows,)
        The noise is part of it. It matters only if it differs between rows; then
        :func:`epistemic_variance`, which leaves it out, asks for what can be learned.
    """
    return _summed("variance", predictive)


def epistemic_variance(predictive: RegressionPredictive) -> Array:
    """Variance of the draws, without the noise, summed over the outputs of a row.

    Parameters
    ----------
    predictive : RegressionPredictive
        Of the candidates.

    Returns
    -------
    array, shape (rows,)
        In the units of y².
    """
    return _summed("epistemic_variance", predictive)


def _summed(name: str, predictive: Any) -> Array:
    if not isinstance(predictive, RegressionPredictive):
        raise InputTypeError(
            f"{name} is for regressions. Got {type(predictive).__name__}; for a "
            f"classification take bald, entropy, variation_ratio or least_confidence."
        )
    values: Tensor = getattr(predictive, name)
    total = values.double().reshape(len(predictive), -1).sum(1)
    return checked_scores(f"The {name}", total, len(predictive))
