"""Linear models with exact dropout posteriors, in scikit-learn's manner."""

from caveat.estimators.linear.classifier import BayesianDropoutClassifier
from caveat.estimators.linear.cross_validation import BayesianDropoutRegressionCV
from caveat.estimators.linear.path import DropoutPath, dropout_path
from caveat.estimators.linear.regression import BayesianDropoutRegression

__all__ = [
    "BayesianDropoutClassifier",
    "BayesianDropoutRegression",
    "BayesianDropoutRegressionCV",
    "DropoutPath",
    "dropout_path",
]
