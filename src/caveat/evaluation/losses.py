"""What a wrong answer costs, row by row: the losses behind risk-coverage curves."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from caveat import _validation
from caveat.errors import ParameterError
from caveat.evaluation.estimates import Array
from caveat.evaluation.scores import checked_scores
from caveat.evaluation.targets import observed_labels, one_output
from caveat.predictive import (
    ClassificationPredictive,
    Predictive,
    RegressionPredictive,
)

Loss: TypeAlias = Callable[[Any, Any], Any]


def misclassified(predictive: ClassificationPredictive, y: Any) -> Array:
    """1 where the most probable class is not the observed one, else 0.

    Parameters
    ----------
    predictive : ClassificationPredictive
        With one label per row.
    y : array or Tensor of integers, shape (rows,)
        Class numbers.

    Returns
    -------
    array of float64, shape (rows,)
    """
    wrong = predictive.label != observed_labels(predictive, y)
    return checked_scores("The loss", wrong, len(predictive))


def absolute_error(predictive: RegressionPredictive, y: Any) -> Array:
    """Distance of the predictive mean from the observation.

    Parameters
    ----------
    predictive : RegressionPredictive
        With one output per row.
    y : array or Tensor, shape (rows,)
        What was observed.

    Returns
    -------
    array of float64, shape (rows,)
    """
    values = one_output(predictive, y).double()
    gap = (predictive.mean.reshape(-1).double() - values).abs()
    return gap.numpy(force=True)


def off_by_more_than(tolerance: float) -> Loss:
    """An error is a mean that is further than ``tolerance`` from the observation.

    Parameters
    ----------
    tolerance : float
        In the units of y.

    Returns
    -------
    callable
        A loss of 1 for such a row and 0 for others.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> predictive = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1.0)
    >>> off_by_more_than(1.5)(predictive, [1.0, -2.0, 3.0])
    array([0., 1., 1.])
    """
    width = _validation.positive("tolerance", tolerance)

    def loss(predictive: RegressionPredictive, y: Any) -> Array:
        return (absolute_error(predictive, y) > width).astype(np.float64)

    return loss


def losses_of(predictive: Predictive, y: Any, loss: Any = None) -> Array:
    """The loss of each row.

    Parameters
    ----------
    predictive : Predictive
        With one output, or one label, per row.
    y : array or Tensor, shape (rows,)
        Observations, or class numbers.
    loss : callable or array of shape (rows,), optional
        A function of the predictive and ``y``, or the losses themselves: one finite
        number of at least 0 per row. By default 1 for a wrong class, and the absolute
        error of a regression.

    Returns
    -------
    array of float64, shape (rows,)
    """
    if loss is None:
        is_classifier = isinstance(predictive, ClassificationPredictive)
        loss = misclassified if is_classifier else absolute_error
    values = loss(predictive, y) if callable(loss) else loss
    return checked_losses(values, len(predictive))


def checked_losses(values: Any, n_rows: int) -> Array:
    """One finite number of at least 0 per row, and at least one row."""
    losses = checked_scores("The loss", values, n_rows)
    if n_rows == 0:
        raise ParameterError("There must be at least one row with a loss. Got none.")
    if not bool((np.isfinite(losses) & (losses >= 0.0)).all()):
        raise ParameterError(
            f"A loss must be finite and at least 0. Got {losses.min()} to "
            f"{losses.max()}."
        )
    return losses
