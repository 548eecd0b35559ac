"""Models for ``bench_tables``: each gives a density or probabilities for new rows."""

import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from caveat.estimators import DropoutClassifier, DropoutRegressor

Array = NDArray[np.float64]
Scores = dict[str, float]
Model = Callable[[Array, Any, Array, Any], Scores]

OURS = "ours"
LEVEL = 0.9
MOST_FOR_GP = 1000  # rows
_LEAST_PROBABILITY = 1e-6  # or a single certain mistake would be infinitely bad


def _gaussian(y: Array, mean: Array, std: Any) -> Scores:
    """Scores of one Gaussian a row."""
    std = np.broadcast_to(std, y.shape)
    log = -0.5 * np.square((y - mean) / std) - np.log(std) - 0.5 * np.log(2 * np.pi)
    half = float(ndtri(0.5 + LEVEL / 2))
    return {
        "log_likelihood": float(log.mean()),
        "error": float(np.sqrt(np.square(y - mean).mean())),
        "coverage": float((np.abs(y - mean) <= half * std).mean()),
        "width": float(2 * half * std.mean()),
    }


def _classes(y: NDArray[Any], probs: Array, classes: NDArray[Any]) -> Scores:
    """Scores of probabilities; a label never seen has the least probability."""
    probs = np.clip(probs, _LEAST_PROBABILITY, None)
    probs = probs / probs.sum(1, keepdims=True)
    hit = y[:, None] == classes
    own = np.where(hit.any(1), (probs * hit).sum(1), _LEAST_PROBABILITY)
    right = classes[probs.argmax(1)] == y
    return {
        "log_likelihood": float(np.log(own).mean()),
        "error": float(1 - right.mean()),
    }


def _constant(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
    return _gaussian(y_new, np.full(len(y_new), y.mean()), max(y.std(), 1e-12))


def _ridge(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(x, y)
    return _gaussian(y_new, *model.predict(x_new, return_std=True))


def _process(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
    kernel = ConstantKernel() * RBF(np.full(x.shape[1], 3.0)) + WhiteKernel()
    if x.shape[1] > 30:
        kernel = ConstantKernel() * RBF(10.0) + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    model = make_pipeline(StandardScaler(), process).fit(x, y)
    return _gaussian(y_new, *model.predict(x_new, return_std=True))


def _with_cv_residuals(make: Callable[[], Any]) -> Model:
    """A model of the mean; its noise is that of five-fold residuals."""

    def run(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
        folds = min(5, len(x))
        gap = cross_val_predict(make(), x, y, cv=folds) - y
        mean = make().fit(x, y).predict(x_new)
        return _gaussian(y_new, mean, np.sqrt(np.square(gap).mean()))

    return run


def _probabilities(make: Callable[[], Any]) -> Model:
    def run(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
        model = make().fit(x, y)
        return _classes(y_new, model.predict_proba(x_new), model.classes_)

    return run


def _frequencies(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
    classes, counts = np.unique(y, return_counts=True)
    probs = np.tile(counts / counts.sum(), (len(y_new), 1))
    return _classes(y_new, probs, classes)


def _our_regressor(**settings: Any) -> Model:
    def run(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
        model = DropoutRegressor(random_state=0, **settings).fit(x, y)
        lower, upper = model.predict_interval(x_new, LEVEL)
        mean = model.predict(x_new)
        return {
            "log_likelihood": model.log_likelihood(x_new, y_new),
            "error": float(np.sqrt(np.square(y_new - mean).mean())),
            "coverage": float(((y_new >= lower) & (y_new <= upper)).mean()),
            "width": float((upper - lower).mean()),
        }

    return run


def _ngboost(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
    from ngboost import NGBRegressor  # type: ignore[import-not-found]

    found = NGBRegressor(verbose=False, random_state=0).fit(x, y).pred_dist(x_new)
    return _gaussian(y_new, found.params["loc"], found.params["scale"])


def _mapie(x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
    """Intervals only: jackknife+ around gradient boosting."""
    from mapie.regression import (
        CrossConformalRegressor,
    )

    model = CrossConformalRegressor(
        HistGradientBoostingRegressor(random_state=0), confidence_level=LEVEL, cv=5
    )
    mean, found = model.fit_conformalize(x, y).predict_interval(x_new)
    lower, upper = found[:, 0, 0], found[:, 1, 0]
    return {
        "error": float(np.sqrt(np.square(y_new - mean).mean())),
        "coverage": float(((y_new >= lower) & (y_new <= upper)).mean()),
        "width": float((upper - lower).mean()),
    }


def _scaled(model: Any) -> Any:
    return make_pipeline(StandardScaler(), model)


REGRESSION: dict[str, Model] = {
    "constant": _constant,
    "linear": _ridge,
    "Gaussian process": _process,
    "MLP": _with_cv_residuals(
        lambda: _scaled(MLPRegressor(max_iter=500, random_state=0))
    ),
    "random forest": _with_cv_residuals(lambda: RandomForestRegressor(random_state=0)),
    "HistGB": _with_cv_residuals(lambda: HistGradientBoostingRegressor(random_state=0)),
    "NGBoost": _ngboost,
    "MAPIE": _mapie,
    OURS: _our_regressor(),
}
CLASSIFICATION: dict[str, Model] = {
    "constant": _frequencies,
    "linear": _probabilities(lambda: _scaled(LogisticRegression(max_iter=2000))),
    "Gaussian process": _probabilities(
        lambda: _scaled(GaussianProcessClassifier(random_state=0))
    ),
    "MLP": _probabilities(lambda: _scaled(MLPClassifier(max_iter=500, random_state=0))),
    "random forest": _probabilities(lambda: RandomForestClassifier(random_state=0)),
    "HistGB": _probabilities(lambda: HistGradientBoostingClassifier(random_state=0)),
    OURS: _probabilities(lambda: DropoutClassifier(random_state=0)),
}
PACKAGES = {"NGBoost": "ngboost", "MAPIE": "mapie"}


def models_for(is_regression: bool, n_rows: int) -> dict[str, Model]:
    """The models that are installed and not too slow for so many rows."""
    found = dict(REGRESSION if is_regression else CLASSIFICATION)
    if n_rows > MOST_FOR_GP:
        del found["Gaussian process"]
    return {
        name: model
        for name, model in found.items()
        if name not in PACKAGES or importlib.util.find_spec(PACKAGES[name])
    }


def missing() -> list[str]:
    """Models whose packages are not installed."""
    return [n for n, p in PACKAGES.items() if not importlib.util.find_spec(p)]


def scores_of(model: Model, x: Array, y: Any, x_new: Array, y_new: Any) -> Scores:
    """What a model is worth on new rows, and the seconds it takes."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of models that have not converged
        found = model(x, y, x_new, y_new)
    return found | {"seconds": time.perf_counter() - start}
