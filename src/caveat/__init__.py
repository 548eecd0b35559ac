"""Caveat: every prediction with its caveat. Dropout as Bayesian inference."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from caveat import errors, noise
from caveat._version import __version__
from caveat.predictive import (
    CategoricalPredictive,
    ClassificationPredictive,
    GaussianPredictive,
    Predictive,
    RegressionPredictive,
)
from caveat.sampling.context import stochastic
from caveat.sampling.mcdropout import MCDropout
from caveat.sampling.registry import register_noise
from caveat.sampling.sites import Site, Sites, audit

if TYPE_CHECKING:
    from caveat.estimators import (
        BayesianDropoutClassifier,
        BayesianDropoutRegression,
        BayesianDropoutRegressionCV,
        DropoutClassifier,
        DropoutRegressor,
        DropoutSearchCV,
        dropout_path,
    )

__all__ = [
    "BayesianDropoutClassifier",
    "BayesianDropoutRegression",
    "BayesianDropoutRegressionCV",
    "CategoricalPredictive",
    "ClassificationPredictive",
    "DropoutClassifier",
    "DropoutRegressor",
    "DropoutSearchCV",
    "GaussianPredictive",
    "MCDropout",
    "Predictive",
    "RegressionPredictive",
    "Site",
    "Sites",
    "__version__",
    "audit",
    "dropout_path",
    "errors",
    "noise",
    "register_noise",
    "stochastic",
]

# scikit-learn takes a second to import, and not everybody needs it.
_ESTIMATORS = frozenset(
    {
        "BayesianDropoutClassifier",
        "BayesianDropoutRegression",
        "BayesianDropoutRegressionCV",
        "DropoutClassifier",
        "DropoutRegressor",
        "DropoutSearchCV",
        "dropout_path",
    }
)
_PARTS = frozenset(
    {
        "data",
        "decisions",
        "estimators",
        "evaluation",
        "maxent",
        "rl",
        "sampling",
        "theory",
        "training",
    }
)


def __getattr__(name: str) -> Any:
    if name in _ESTIMATORS:
        return getattr(import_module("caveat.estimators"), name)
    if name in _PARTS:
        return import_module(f"caveat.{name}")
    raise AttributeError(f"module 'caveat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS])
