"""What every regression estimator answers, all of it read off its predictive."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from torch import Tensor

from caveat import _validation
from caveat.evaluation.targets import observed_values
from caveat.predictive import RegressionPredictive

Array = NDArray[np.float64]
Ask = Callable[[RegressionPredictive], tuple[Tensor, ...]]


class RegressionAnswers(RegressorMixin):  # type: ignore[misc]
    """Means, intervals and densities of rows, from ``predictive``."""

    @abstractmethod
    def predictive(self, X: Any) -> RegressionPredictive:
        """The predictive distribution of each row."""

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean of new observations, and their standard deviation.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            The rows to predict.
        return_std : bool, default False
            Also give the standard deviation of a new observation: what is not known
            of the function and the noise together.

        Returns
        -------
        mean : array, shape (rows,) or (rows, outputs), as y was
        std : array of the same shape
            Only with ``return_std``.
        """
        mean, std = self._asked(X, lambda found: (found.mean, found.std))
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Intervals that hold new observations with a given probability.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            The rows to predict.
        level : float, default 0.95
            Probability inside; the same is left out on both sides.

        Returns
        -------
        lower, upper : array, shape (rows,) or (rows, outputs), as y was
        """
        _validation.unit_interval("level", level)
        lower, upper = self._asked(X, lambda found: found.interval(level))
        return lower, upper

    def log_likelihood(self, X: Any, y: Any) -> float:
        """Mean log predictive density of observations, in the units of y.

        Parameters
        ----------
        X : array, sparse matrix or data frame, shape (rows, features)
            Rows.
        y : array, shape (rows,) or (rows, outputs)
            What was observed there.

        Returns
        -------
        float
            Joint over outputs, higher is better. For single rows ask
            ``predictive(X).log_prob``.
        """
        found = self.predictive(X)
        return float(found.log_prob(observed_values(found, y)).mean())

    def _asked(self, X: Any, ask: Ask) -> list[Array]:
        """What is asked of the predictive, for all rows."""
        return [answer.numpy() for answer in ask(self.predictive(X))]
