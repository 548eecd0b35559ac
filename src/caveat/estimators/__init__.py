"""Estimators in scikit-learn's manner."""

from caveat.estimators.classifier import DropoutClassifier
from caveat.estimators.linear import (
    BayesianDropoutClassifier,
    BayesianDropoutRegression,
    BayesianDropoutRegressionCV,
    DropoutPath,
    dropout_path,
)
from caveat.estimators.noise_head import NoiseHead
from caveat.estimators.pbp import PBPRegressor
from caveat.estimators.pipelines import predictive_of
from caveat.estimators.prior import Prior
from caveat.estimators.regressor import DropoutRegressor
from caveat.estimators.search_cv import DropoutSearchCV
from caveat.training.schedules import EarlyStopping, Schedule

__all__ = [
    "DropoutRegressor",
    "DropoutClassifier",
    "DropoutSearchCV",
    "NoiseHead",
    "PBPRegressor",
    "Prior",
    "Schedule",
    "EarlyStopping",
    "BayesianDropoutClassifier",
    "BayesianDropoutRegression",
    "BayesianDropoutRegressionCV",
    "DropoutPath",
    "dropout_path",
    "predictive_of",
]
