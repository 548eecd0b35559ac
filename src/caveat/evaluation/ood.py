"""Whether scores tell rows apart: foreign from familiar, wrong from right.

.. [DeLong1988] E. R. DeLong, D. M. DeLong, D. L. Clarke-Pearson. Comparing the areas
   under two or more correlated receiver operating characteristic curves. Biometrics 44.
"""

import math
from typing import Any

import numpy as np
from scipy.stats import rankdata

from caveat.errors import ParameterError
from caveat.evaluation.estimates import Array, Estimate, mean_error
from caveat.evaluation.losses import misclassified
from caveat.evaluation.scores import Score, score_of, scores_of_rows
from caveat.predictive import ClassificationPredictive, Predictive


def ood_auroc(familiar: Predictive, foreign: Predictive, *, score: Score) -> Estimate:
    """Probability that a foreign row looks more uncertain than a familiar one.

    Parameters
    ----------
    familiar : Predictive
        Of rows like those the model was trained on.
    foreign : Predictive
        Of rows from elsewhere (out of distribution).
    score : str or callable
        As for :func:`caveat.evaluation.score_of`.

    Returns
    -------
    Estimate
        Area under the ROC curve; 0.5 if the score cannot tell. The error is that of
        [DeLong1988]_ (ledger E110).

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> spread = torch.tensor([[-1.0, -2.0, -3.0], [1.0, 2.0, 3.0]])  # 2 draws, 3 rows
    >>> near = GaussianPredictive.from_draws(spread, precision=1.0)
    >>> far = GaussianPredictive.from_draws(2.2 * spread, precision=1.0)
    >>> round(ood_auroc(near, far, score="std").value, 4)
    0.8889
    """
    return auroc(score_of(familiar, score), score_of(foreign, score))


def error_auroc(
    predictive: ClassificationPredictive, y: Any, *, score: Score = "least_confidence"
) -> Estimate:
    """Probability that a wrong row looks more uncertain than a right one.

    Parameters
    ----------
    predictive : ClassificationPredictive
        With one label per row.
    y : array or Tensor of integers, shape (rows,)
        Class numbers.
    score : str or callable, default "least_confidence"
        As for :func:`caveat.evaluation.score_of`.

    Returns
    -------
    Estimate
        As for :func:`ood_auroc`.
    """
    wrong = misclassified(predictive, y) > 0.0
    scores = score_of(predictive, score)
    if wrong.all() or not wrong.any():
        raise ParameterError(
            f"There must be both right and wrong rows to tell apart. "
            f"{int(wrong.sum())} of {len(wrong)} rows are wrong."
        )
    return auroc(scores[~wrong], scores[wrong])


def auroc(low: Array, high: Array) -> Estimate:
    """Probability that one of ``high`` is above one of ``low``, ties counting half.

    Parameters
    ----------
    low, high : array
        Scores of the two kinds of rows, at least one each; not NaN.

    Returns
    -------
    Estimate
    """
    low, high = scores_of_rows(low), scores_of_rows(high)
    if not (len(low) and len(high)):
        raise ParameterError(
            f"There must be rows of both kinds. Got {len(low)} and {len(high)}."
        )
    ranks = rankdata(np.concatenate([low, high]))  # ranks have no infinity
    # E110: V_i = share of low rows below high row i (ties half), W_j = share of high
    #       rows above low row j; AUROC = mean V = mean W, and
    #       SE² = var(V) / n_high + var(W) / n_low
    above = (ranks[len(low) :] - rankdata(high)) / len(low)
    below = 1.0 - (ranks[: len(low)] - rankdata(low)) / len(high)
    error = math.hypot(mean_error(above), mean_error(below))
    return Estimate(float(above.mean()), error)
