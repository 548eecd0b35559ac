"""The continuous ranked probability score, averaged over rows."""

from typing import Any

from caveat.evaluation.estimates import Array, Estimate
from caveat.evaluation.targets import observed_values
from caveat.predictive import RegressionPredictive


def crps(predictive: RegressionPredictive, y: Any) -> Estimate:
    """Continuous ranked probability score of what was observed; lower is better.

    Parameters
    ----------
    predictive : RegressionPredictive
        Of the rows. One of draws needs its draws.
    y : array or Tensor, shape (rows,) or that of the mean
        What was observed.

    Returns
    -------
    Estimate
        In the units of y; of each output on its own, averaged. Mixtures are scored as
        mixtures, not as a Gaussian of the same moments.

    Examples
    --------
    >>> import torch
    >>> from caveat.predictive import GaussianPredictive
    >>> predictive = GaussianPredictive.from_draws(
    ...     torch.zeros(300, 2), precision=1.0
    ... )
    >>> crps(predictive, [0.0, 2.0]).value  # (0.2337 + 1.4528) / 2
    0.843...
    """
    return Estimate.of_mean(crps_of_rows(predictive, y).mean(1))


def crps_of_rows(predictive: RegressionPredictive, y: Any) -> Array:
    """The score of each row and output; shape (rows, outputs)."""
    found = predictive.crps(observed_values(predictive, y)).double().numpy(force=True)
    return found.reshape(len(found), -1)
