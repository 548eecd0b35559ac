"""One scheme of names and orders for all that is asked with data.

Read off the public surface: what is predicted comes first, then what was observed, and
what estimators answer is called alike in all of them.
"""

import inspect
from importlib import import_module
from pathlib import Path

import pytest

from caveat import estimators

LISTED = Path(__file__).with_name("public_api.txt").read_text().split()
# Say what a function is about, in the order in which they come.
ORDER = ("predictive", "draws", "X", "x", "y")
OTHER_NAMES = {"labels", "target", "targets", "observed", "y_true", "x_test"}
# Take two sets of points, of which y is one.
OF_POINTS = {"network_covariance", "RandomFeatures.kernel", "CO2Transform.to_ppm"}
# ``labels`` and ``target`` are not observations beside a prediction here.
OTHER_THINGS = {"LearningCurve.labels_needed", "ActiveLearner.run"}
OTHER_THINGS |= {"ActiveLearner.tell", "ClassificationProblem.standardised"}
# Its features are an extra, by name only, after what a report cannot do without.
OTHER_THINGS |= {"report"}


def _found(name):
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:count]))
        except ImportError:
            continue
        for part in parts[count:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(name)


def _signatures():
    """Every public function and method of ours, by its name."""
    found = {}
    for listed in LISTED:
        thing = _found(listed)
        members = [thing]
        if inspect.isclass(thing):
            names = (name for name in dir(thing) if not name.startswith("_"))
            members = [getattr(thing, name) for name in names]
        for member in members:
            function = inspect.unwrap(getattr(member, "__func__", member))
            module = getattr(function, "__module__", "") or ""
            if inspect.isfunction(function) and module.startswith("caveat"):
                parameters = list(inspect.signature(function).parameters)
                own = [p for p in parameters if p not in ("self", "cls")]
                found[function.__qualname__] = own
    return found


SIGNATURES = _signatures()


def test_there_is_something_to_read():
    assert len(SIGNATURES) > 200
    assert SIGNATURES["PredictiveDisplay.from_predictive"][0] == "predictive"


@pytest.mark.parametrize("name", sorted(set(SIGNATURES) - OF_POINTS - OTHER_THINGS))
def test_predictions_come_first_and_then_what_was_observed(name):
    own = SIGNATURES[name]
    told = [p for p in own if p in ORDER]
    assert told == sorted(told, key=ORDER.index)
    if told and "predictive" in told:
        assert own[0] == "predictive"
    if "y" in told or "predictive" in told:
        assert not OTHER_NAMES & set(own)


def _answers(kind):
    return {name for name in dir(kind) if not name.startswith("_")}


ESTIMATORS = [
    value
    for value in vars(estimators).values()
    if inspect.isclass(value) and hasattr(value, "fit") and hasattr(value, "predict")
]
BOTH = {"fit": "X y", "predict": "X", "predictive": "X", "log_likelihood": "X y"}
REGRESSION = {"predict": "X return_std", "predict_interval": "X level"}
CLASSIFICATION = {"predict_proba": "X"}


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_estimators_answer_alike(kind):
    classifies = hasattr(kind, "predict_proba")
    wanted = BOTH | (CLASSIFICATION if classifies else REGRESSION)
    for name, parameters in wanted.items():
        assert name in _answers(kind), f"{kind.__name__} has no {name}"
        own = list(inspect.signature(getattr(kind, name)).parameters)[1:]
        names = parameters.split()
        assert own[: len(names)] == names
    if not classifies:
        level = inspect.signature(kind.predict_interval).parameters["level"]
        assert level.default == 0.95
