"""All kinds of objects that a model file may hold."""

from collections.abc import Callable
from copy import copy
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from caveat import decisions, estimators, evaluation, noise
from caveat.decisions.defer_targets import ThresholdChoice
from caveat.decisions.guarantees import CalibrationScores, Guarantee
from caveat.errors import ParameterError
from caveat.estimators.tables.classification import TableClassification
from caveat.estimators.tables.columns import Columns
from caveat.estimators.tables.heads import Heads
from caveat.estimators.tables.logistic import Logistic
from caveat.estimators.tables.nets import Nets
from caveat.estimators.tables.noise import FarNoise, NoiseLaw
from caveat.estimators.tables.records import Candidate
from caveat.estimators.tables.regression import Bent, TableRegression
from caveat.estimators.tables.ridge import Ridge
from caveat.files.codec import FileKind
from caveat.maxent.linear.design import Design
from caveat.maxent.linear.features import Features
from caveat.maxent.linear.intercept import Intercept
from caveat.maxent.linear.noise import BernoulliFeatureNoise, GaussianFeatureNoise
from caveat.maxent.linear.posterior import LinearPosterior, VariancePrior
from caveat.training.bayesian import Choices, LogUniform
from caveat.training.pbp.gamma import Gamma
from caveat.training.pbp.layers import Weights
from caveat.training.pbp.networks import PBPNetworks, PriorFactors
from caveat.training.pbp.units import PBPFit
from caveat.training.scaling import Scaling

Values = dict[str, Any]

_FAMILIES = [
    kind
    for name in noise.__all__
    if isinstance(kind := getattr(noise, name), type)
    and issubclass(kind, noise.Noise)
    and kind is not noise.Noise
]
_PARTS = (
    *(estimators.Schedule, estimators.EarlyStopping, estimators.Prior),
    *(estimators.NoiseHead, LogUniform, *_FAMILIES),
    *(TableRegression, TableClassification, Columns, Ridge, Bent, Logistic, Nets),
    *(NoiseLaw, FarNoise, Heads, Candidate, Scaling),
    *(Features, BernoulliFeatureNoise, GaussianFeatureNoise, Intercept, Design),
    *(LinearPosterior, PBPFit, PBPNetworks, PriorFactors, Weights),
    *(decisions.Coverage, decisions.ErrorRate, decisions.Costs),
    *(decisions.ScaledResidual, decisions.QuantileResidual),
    *(decisions.LeastAmbiguous, decisions.AdaptiveSets),
    *(Guarantee, CalibrationScores, evaluation.RiskCoverage),
)
POLICIES = (
    *(evaluation.PrecisionCalibration, evaluation.TemperatureCalibration),
    *(decisions.DeferralPolicy, decisions.ConformalIntervals, decisions.ConformalSets),
)
NETWORKS = (estimators.DropoutRegressor, estimators.DropoutClassifier)
# What each linear estimator has learned, beside its posteriors.
LINEAR: dict[type[Any], tuple[str, ...]] = {
    estimators.BayesianDropoutRegression: ("posterior_",),
    estimators.BayesianDropoutRegressionCV: (
        *("posterior_", "scores_", "best_score_", "drop_rate_", "prior_precision_"),
    ),
    estimators.BayesianDropoutClassifier: ("posteriors_", "classes_"),
}
_SEARCHED = (
    *("best_estimator_", "best_params_", "best_score_", "best_index_"),
    "cv_results_",
)
_ABSORBED = ("fit_", "precision_")
ESTIMATORS = (
    *(*NETWORKS, *LINEAR),
    *(estimators.DropoutSearchCV, estimators.PBPRegressor),
)
_COMMON = ("n_features_in_", "feature_names_in_")


def all_kinds() -> dict[str, FileKind]:
    """By the name that stands in files."""
    own = [
        *map(_record, (*_PARTS, *POLICIES)),
        *map(_tuple, (VariancePrior, ThresholdChoice, Gamma)),
    ]
    own += [_network(kind) for kind in NETWORKS]
    own += [_linear(kind, names) for kind, names in LINEAR.items()]
    own += [_plainly(estimators.DropoutSearchCV, _SEARCHED, is_tried=False)]
    own += [_plainly(estimators.PBPRegressor, _ABSORBED, is_tried=True), _choices()]
    if find_spec("pyarrow") is not None:
        own += _of_frames()
    return {kind.type.__name__: kind for kind in own}


def _of_frames() -> list[FileKind]:
    """Tables need pyarrow, and all else does not."""
    from caveat.frames import Asking, Column, Dropped, FrameModel, Schema, Target

    plain = _record(FrameModel)

    def together(values: Values) -> Any:
        made = plain.together(values)
        features, estimator = made.schema.features, made.estimator
        if type(estimator) not in ESTIMATORS:
            raise ParameterError(f"{estimator!r} is no estimator")
        if len(features) != estimator.n_features_in_:
            raise ParameterError("its columns are not those of its estimator")
        if made.is_classifier != hasattr(estimator, "classes_"):
            raise ParameterError("its target is not that of its estimator")
        made.answers(np.zeros((1, len(features))), Asking(n_draws=_FEW))
        made.lines()
        return made

    own = FileKind(FrameModel, plain.apart, together)
    return [*map(_record, (Column, Dropped, Schema, Target)), own]


def _record(kind: type[Any]) -> FileKind:
    """A dataclass: the fields that it is made from."""
    names = [f.name for f in fields(kind) if f.init]

    def together(values: Values) -> Any:
        if list(values) != names:
            raise ParameterError(f"a {kind.__name__} is made of {', '.join(names)}")
        return kind(**values)

    return FileKind(kind, lambda value: {n: getattr(value, n) for n in names}, together)


def _tuple(kind: type[Any]) -> FileKind:
    """A named tuple."""
    return FileKind(kind, lambda value: value._asdict(), lambda values: kind(**values))


def _choices() -> FileKind:
    return FileKind(
        Choices, lambda value: {"values": value.values}, lambda v: Choices(*v["values"])
    )


def _network(kind: Any) -> FileKind:
    def apart(value: Any) -> Values:
        if not hasattr(value, "networks_"):  # the template of a search
            parameters = value.get_params(deep=False)
            return {"parameters": parameters, "state": None, "trial": None}
        parameters, state = value._saved()
        return {"parameters": parameters, "state": state, "trial": trial(value)}

    def together(values: Values) -> Any:
        if values["state"] is None:
            return kind(**values["parameters"])
        made = kind._from_saved(values["parameters"], values["state"])
        return tried(made, values["trial"])

    return FileKind(kind, apart, together)


def _linear(kind: Any, names: tuple[str, ...]) -> FileKind:
    def together(values: Values) -> Any:
        made, state = kind(**values["parameters"]), dict(values["state"])
        _only(state, (*_COMMON, *names))
        made._keep(state.pop("posterior_" if "posterior_" in names else "posteriors_"))
        vars(made).update(state)
        return tried(made, values["trial"])

    return FileKind(kind, partial(_fitted, names=names, is_tried=True), together)


def _plainly(kind: Any, names: tuple[str, ...], *, is_tried: bool) -> FileKind:
    """An estimator that is no more than its parameters and what it has learned."""

    def together(values: Values) -> Any:
        made = kind(**values["parameters"])
        _only(values["state"], (*_COMMON, *names))
        vars(made).update(values["state"])
        return tried(made, values["trial"]) if is_tried else made

    return FileKind(kind, partial(_fitted, names=names, is_tried=is_tried), together)


def _fitted(value: Any, *, names: tuple[str, ...], is_tried: bool) -> Values:
    if not hasattr(value, names[0]):
        raise ParameterError(
            f"This {type(value).__name__} is not fitted yet, so there is nothing to "
            f"save. Call fit first."
        )
    state = {n: getattr(value, n) for n in (*_COMMON, *names) if hasattr(value, n)}
    parameters = value.get_params(deep=False)
    if not isinstance(parameters.get("random_state", 0), int | np.integer):
        parameters["random_state"] = None
    parameters = {n: _plain(v) for n, v in parameters.items()}
    found = {"parameters": parameters, "state": state}
    return found | ({"trial": trial(value)} if is_tried else {})


def _plain(value: Any) -> Any:
    """A parameter that may be any sequence or path as a file knows it."""
    return str(value) if hasattr(value, "__fspath__") else value


def _only(state: Values, names: tuple[str, ...]) -> None:
    if not set(state) <= set(names):
        raise ParameterError(f"{sorted(set(state) - set(names))} are not learned by it")


# Trials: a model that comes back must answer as it did


def trial(model: Any) -> np.ndarray:
    """What a model says of two rows, which is stored beside it."""
    rows = np.stack([np.zeros(model.n_features_in_), np.ones(model.n_features_in_)])
    answer: Callable[[Any], Any] = getattr(model, "predict_proba", model.predict)
    names = getattr(model, "feature_names_in_", None)
    bare = model if names is None else _without_names(model)
    if getattr(bare, "n_draws", 0) > _FEW:
        bare = _copied(bare, n_draws=_FEW)
    return np.asarray(getattr(bare, answer.__name__)(rows), dtype=np.float64)


_FEW = 20  # draws of a trial
_TOLERANCE = 1e-4  # relative; networks compute in single precision


def tried(model: Any, expected: Any) -> Any:
    """The model, if it says the same again; an exception of any kind if not."""
    found = trial(model)
    if not isinstance(expected, np.ndarray) or found.shape != expected.shape:
        raise ParameterError("its trial does not fit")
    scale = np.abs(expected) + np.abs(expected).max(initial=0.0)
    if not bool((np.abs(found - expected) <= _TOLERANCE * scale).all()):
        raise ParameterError(
            f"it answers {found.ravel()[:3].tolist()} where it answered "
            f"{expected.ravel()[:3].tolist()} when it was saved"
        )
    return model


def _copied(model: Any, **changes: Any) -> Any:
    twin = copy(model)
    vars(twin).update(changes)
    return twin


def _without_names(model: Any) -> Any:
    twin = _copied(model)
    del twin.feature_names_in_
    return twin
