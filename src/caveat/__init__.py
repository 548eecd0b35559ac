"""Caveat: every prediction with its caveat. Dropout as Bayesian inference."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from caveat import errors
from caveat._version import __version__

if TYPE_CHECKING:
    from caveat import noise
    from caveat.estimators import (
        BayesianDropoutClassifier,
        BayesianDropoutRegression,
        BayesianDropoutRegressionCV,
        DropoutClassifier,
        DropoutRegressor,
        DropoutSearchCV,
        PBPRegressor,
        dropout_path,
    )
    from caveat.exporting import export
    from caveat.files import load, save
    from caveat.predictive import (
        CategoricalPredictive,
        ClassificationPredictive,
        GaussianPredictive,
        Predictive,
        RegressionPredictive,
    )
    from caveat.reports import report
    from caveat.sampling import (
        MCDropout,
        Site,
        Sites,
        audit,
        register_noise,
        stochastic,
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
    "PBPRegressor",
    "Predictive",
    "RegressionPredictive",
    "Site",
    "Sites",
    "__version__",
    "audit",
    "dropout_path",
    "errors",
    "export",
    "load",
    "noise",
    "register_noise",
    "report",
    "save",
    "stochastic",
]

# Parts and names are imported when first asked for: nobody needs all of them.
_PARTS = frozenset(
    """
    arviz data decisions engines estimators evaluation files frames hf lightning
    maxent mlflow noise predictive reports rl sampling scoring serve theory training
    """.split()
)
_NAMES = {
    "caveat.predictive": """CategoricalPredictive ClassificationPredictive
        GaussianPredictive Predictive RegressionPredictive""",
    "caveat.reports": "report",
    "caveat.sampling": "MCDropout Site Sites audit register_noise stochastic",
    "caveat.estimators": """BayesianDropoutClassifier BayesianDropoutRegression
        BayesianDropoutRegressionCV DropoutClassifier DropoutRegressor DropoutSearchCV
        PBPRegressor dropout_path""",
    "caveat.files": "load save",
    "caveat.exporting": "export",
}
_WHERE = {name: part for part, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        found = getattr(import_module(_WHERE[name]), name)
        globals()[name] = found  # asked for once
        return found
    if name in _PARTS:
        return import_module(f"caveat.{name}")
    raise AttributeError(f"module 'caveat' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_PARTS})
