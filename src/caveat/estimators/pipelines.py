"""Predictives of estimators at the end of a scikit-learn Pipeline."""

from typing import Any

from sklearn.pipeline import Pipeline

from caveat.errors import InputTypeError
from caveat.predictive import Predictive


def predictive_of(model: Any, X: Any) -> Predictive:
    """The predictive distribution of rows as the whole pipeline takes them.

    Parameters
    ----------
    model : Pipeline or estimator
        Fitted; the last step, or the estimator itself, has ``predictive``.
    X : array, sparse matrix or data frame, shape (rows, features)
        Rows as the first step takes them.

    Returns
    -------
    Predictive
        For intervals, quantiles, densities and all else.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from caveat.estimators import DropoutRegressor, Schedule, predictive_of
    >>> X = np.linspace(-2, 2, 50)[:, None]
    >>> network = DropoutRegressor(schedule=Schedule(epochs=20), random_state=0)
    >>> model = make_pipeline(StandardScaler(), network).fit(X, X[:, 0])
    >>> lower, upper = predictive_of(model, X).interval(0.9)
    """
    last, rows = model, X
    if isinstance(model, Pipeline):
        rows = model[:-1].transform(X) if len(model) > 1 else X
        last = model[-1]
    if not hasattr(last, "predictive"):
        raise InputTypeError(
            "model must be, or end with, an estimator that has predictive(X), such as "
            f"DropoutRegressor. Got {type(last).__name__}."
        )
    found: Predictive = last.predictive(rows)
    return found
