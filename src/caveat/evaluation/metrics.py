"""How good predictions are: each metric with its standard error over rows."""

import math
from typing import Any

import numpy as np
import torch

from caveat import _validation
from caveat.evaluation.estimates import Array, Estimate, mean_error
from caveat.evaluation.targets import observed_labels, observed_values, regression_of
from caveat.predictive import (
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)


def rmse(predictive: RegressionPredictive, y: Any) -> Estimate:
    """Root of the mean squared error of the predictive mean.

    Parameters
    ----------
    predictive : RegressionPredictive
        Of the rows.
    y : array or Tensor, shape (rows,) or that of the mean
        What was observed.

    Returns
    -------
    Estimate
        In the units of y, over all rows and outputs. Its error is that of the mean
        squared error, divided by 2 RMSE (ledger E100).

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> predictive = GaussianPredictive.from_draws(torch.zeros(2, 4), precision=1.0)
    >>> print(rmse(predictive, [1.0, -1.0, 2.0, 0.0]))
    1.22 ± 0.35
    """
    values = observed_values(predictive, y)
    squares = _rows((predictive.mean - values).double().square())
    root = math.sqrt(float(squares.mean()))
    # E100: SE(sqrt m) = SE(m) / (2 sqrt m), m the mean of the squares
    return Estimate(root, mean_error(squares) / (2.0 * root) if root else 0.0)


def log_likelihood(predictive: Predictive, y: Any) -> Estimate:
    """Mean log predictive density, or log probability, of what was observed.

    Parameters
    ----------
    predictive : Predictive
        Of any kind. One of draws needs its draws.
    y : array or Tensor
        Observations, or class numbers.

    Returns
    -------
    Estimate
        Eq. 13 of paper 001, per row: joint over the outputs of a row.
    """
    if isinstance(predictive, ClassificationPredictive):
        found = predictive.log_prob(observed_labels(predictive, y))
    else:
        regression = regression_of(predictive)
        found = regression.log_prob(observed_values(regression, y))
    return Estimate.of_mean(_rows(found.double()))


def accuracy(predictive: ClassificationPredictive, y: Any) -> Estimate:
    """Share of rows whose most probable class is the observed one.

    Parameters
    ----------
    predictive : ClassificationPredictive
        Of the rows.
    y : array or Tensor of integers, shape (rows, *extra)
        Class numbers.

    Returns
    -------
    Estimate
    """
    labels = observed_labels(predictive, y)
    return Estimate.of_mean(_rows((predictive.label == labels).double()))


def brier(predictive: ClassificationPredictive, y: Any) -> Estimate:
    """Brier score: squared distance between the probabilities and what happened.

    Parameters
    ----------
    predictive : ClassificationPredictive
        Of the rows.
    y : array or Tensor of integers, shape (rows, *extra)
        Class numbers.

    Returns
    -------
    Estimate
        Between 0 and 2, summed over classes (ledger E101); for two classes this is
        twice the score of the second class alone.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import CategoricalPredictive
    >>> logits = torch.tensor([[[0.5, 0.5], [0.9, 0.1]]]).log()  # one draw
    >>> print(brier(CategoricalPredictive.from_logits(logits), [0, 1]))
    1.06 ± 0.56
    """
    labels = observed_labels(predictive, y)
    probs = predictive.probs.double()
    happened = torch.nn.functional.one_hot(labels, probs.shape[-1])
    # E101: (1/n) sum_i sum_c (p_ic - [y_i = c])²
    return Estimate.of_mean(_rows((probs - happened).square().sum(-1)))


def sharpness(predictive: Predictive, *, level: float = 0.9) -> Estimate:
    """How narrow the predictions are: it needs no observations.

    Parameters
    ----------
    predictive : Predictive
        Of any kind. One of draws needs its draws.
    level : float, default 0.9
        Of the intervals, for regression.

    Returns
    -------
    Estimate
        For regression the mean width of the central intervals, in the units of y; for
        classification the mean entropy of the probabilities, in nats.
    """
    if isinstance(predictive, ClassificationPredictive):
        return Estimate.of_mean(_rows(predictive.entropy.double()))
    level = _validation.unit_interval("level", level)
    lower, upper = regression_of(predictive).interval(level)
    return Estimate.of_mean(_rows((upper - lower).double()))


def _rows(values: torch.Tensor) -> Array:
    """The mean of what a row has, one number per row."""
    array = values.numpy(force=True)
    return np.asarray(array.reshape(len(array), -1).mean(1), dtype=np.float64)
