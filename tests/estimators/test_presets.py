"""Presets: what goes with them, and what the estimators do by themselves."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import caveat
from caveat.errors import ParameterError
from caveat.estimators import DropoutClassifier, DropoutRegressor, predictive_of
from caveat.estimators import classifier as classifier_module
from caveat.estimators import regressor as regressor_module
from caveat.estimators.presets import preset_of
from tests.estimators.dropout_data import labelled, rows
from tests.estimators.tables.data import CHEAP, CHEAPEST
from tests.estimators.test_regressor import EXPECTED_FAILURES
from tests.pages import run_page

# On noise, networks are worse than a constant, and it is said.
pytestmark = pytest.mark.filterwarnings("ignore:the networks .* are worse")

ROOT = Path(__file__).parents[2]


@pytest.fixture
def cheap(monkeypatch):
    for module in (regressor_module, classifier_module):
        monkeypatch.setattr(module, "budget_of", lambda *a, **k: CHEAP)


def test_no_argument_is_auto_and_an_argument_is_a_recipe():
    assert preset_of(DropoutRegressor()) == "auto"
    assert preset_of(DropoutRegressor(n_draws=7, random_state=3)) == "auto"
    for given in ({"hidden": (50,)}, {"drop_rate": 0.05}, {"precision": 2.0}):
        assert preset_of(DropoutRegressor(**given)) is None
    assert preset_of(DropoutClassifier(preset=None)) is None
    assert preset_of(clone(DropoutClassifier(class_weight="balanced"))) == "auto"


@pytest.mark.parametrize("preset", ["fast", "best"])
def test_contradictions_are_refused(preset):
    assert preset_of(DropoutRegressor(preset=preset)) == preset
    with pytest.raises(ParameterError, match=r"Got hidden beside it"):
        preset_of(DropoutRegressor(preset=preset, hidden=(10,)))


def test_unknown_presets_are_refused():
    x, y = rows()
    with pytest.raises(ParameterError, match="preset must be one of"):
        DropoutRegressor(preset="fastest").fit(x, y)


@pytest.mark.parametrize("kind", [DropoutRegressor, DropoutClassifier])
def test_all_checks_of_scikit_learn(kind, monkeypatch):
    for module in (regressor_module, classifier_module):
        monkeypatch.setattr(module, "budget_of", lambda *a, **k: CHEAPEST)
    found = check_estimator(
        kind(n_draws=20, random_state=0),
        expected_failed_checks=EXPECTED_FAILURES,
        on_fail=None,
        on_skip=None,
    )
    failed = {r["check_name"]: r["exception"] for r in found if r["status"] == "failed"}
    assert len(found) > 45 and failed == {}


def test_a_regressor_tells_what_it_chose(cheap, capsys):
    x, y = rows(120)
    model = DropoutRegressor(random_state=0, progress=True).fit(x, y)
    assert model.chosen_ in capsys.readouterr().err
    weights = [c.weight for c in model.candidates_]
    assert weights == sorted(weights, reverse=True) and np.isclose(sum(weights), 1.0)
    assert {c.name for c in model.candidates_} >= {"constant", "linear", "networks"}
    assert model.validation_log_likelihood_ > -2.0
    mean, std = model.predict(x, return_std=True)
    assert mean.shape == std.shape == (120,)
    lower, upper = model.predict_interval(x, 0.9)
    assert 0.8 < ((y >= lower) & (y <= upper)).mean() < 0.99


def test_samples_have_the_spread_of_the_predictive(cheap):
    x, y = rows(80)
    model = DropoutRegressor(random_state=0).fit(x, y)
    drawn = model.sample_y(x[:3], n_draws=4000)
    std = model.predict(x[:3], return_std=True)[1]
    assert drawn.shape == (4000, 3)
    assert np.allclose(drawn.std(0), std, rtol=0.1)
    singles = [model.sample_y(x[:1], random_state=seed).item() for seed in range(40)]
    assert np.std(singles) > 0.5 * std[0]


@pytest.mark.parametrize("labels", [("a", "b", "c"), (1, 2, 7), (False, True)])
def test_a_classifier_keeps_its_labels(labels, cheap, tmp_path):
    x, y = labelled(labels=labels)
    model = DropoutClassifier(random_state=0).fit(x, y)
    assert model.score(x, y) > 0.8 and set(model.predict(x)) <= set(labels)
    assert model.sample_y(x, 3).shape == (3, 90)
    caveat.save(model, tmp_path / "m")
    again = caveat.load(tmp_path / "m")
    assert np.array_equal(again.predict_proba(x), model.predict_proba(x))
    assert again.candidates_ == model.candidates_


def test_saving_a_pool(cheap, tmp_path):
    x, y = rows(n_outputs=2)
    model = DropoutRegressor(random_state=0).fit(x, y)
    caveat.save(model, tmp_path / "m")
    again = caveat.load(tmp_path / "m")
    assert np.array_equal(again.predict(x), model.predict(x))
    assert again.chosen_ == model.chosen_
    assert again.validation_log_likelihood_ == model.validation_log_likelihood_


def test_class_weights(cheap):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(200, 2)), np.repeat([0, 1], [180, 20])
    plain = DropoutClassifier(random_state=0).fit(x, y)
    balanced = DropoutClassifier(random_state=0, class_weight="balanced").fit(x, y)
    assert plain.predict_proba(x)[:, 1].mean() < 0.2
    assert 0.3 < balanced.predict_proba(x)[:, 1].mean() < 0.7


@pytest.mark.parametrize("given", [{}, {"hidden": (10,)}])
def test_sample_weights(given, cheap):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    y = np.where(np.arange(200) % 2, 5.0, -5.0) + 0.1 * rng.normal(size=200)
    weight = np.where(np.arange(200) % 2, 1.0, 1e-6)
    model = DropoutRegressor(random_state=0, **given).fit(x, y, sample_weight=weight)
    assert np.abs(model.predict(x) - 5.0).mean() < 0.5
    assert model.predict(x, return_std=True)[1].mean() < 1.0
    with pytest.raises(ValueError, match="at least one non-zero"):
        model.fit(x, y, sample_weight=np.zeros(200))


def test_missing_values_are_refused_with_a_remedy(cheap):
    x, y = rows()
    x[3, 1] = np.nan
    with pytest.raises(ParameterError, match="SimpleImputer"):
        DropoutRegressor().fit(x, y)
    with pytest.raises(ParameterError, match="SimpleImputer"):
        DropoutClassifier().fit(x, y > 0)
    make_pipeline(SimpleImputer(), DropoutRegressor(random_state=0)).fit(x, y)


def test_predictives_through_a_pipeline(cheap):
    x, y = rows()
    pipeline = make_pipeline(StandardScaler(), DropoutRegressor(random_state=0))
    pipeline.fit(x, y)
    found = predictive_of(pipeline, x)
    assert np.allclose(found.mean.numpy(), pipeline.predict(x))
    assert np.allclose(predictive_of(pipeline[-1], x).mean, pipeline[-1].predict(x))


def test_the_page_runs(cheap):
    run_page("docs/tables.md")


def test_names_of_features_are_kept_and_checked(cheap):
    x, y = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    model = DropoutRegressor(random_state=0).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["b", "a", "c"]])
