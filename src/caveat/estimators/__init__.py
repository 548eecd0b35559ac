"""Estimators in scikit-learn's manner."""

from caveat.estimators.classifier import DropoutClassifier
from caveat.estimators.linear import (
    BayesianDropoutClassifier,
    BayesianDropoutRegression,
    BayesianDropoutRegressionCV,
    DropoutPath,
    dropout_path,
)
from caveat.estimators.regressor import DropoutRegressor
from caveat.estimators.search_cv import DropoutSearchCV

__all__ = [
    "DropoutRegressor",
    "DropoutClassifier",
    "DropoutSearchCV",
    "BayesianDropoutClassifier",
    "BayesianDropoutRegression",
    "BayesianDropoutRegressionCV",
    "DropoutPath",
    "dropout_path",
]
