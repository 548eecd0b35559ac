"""PBPRegressor: scikit-learn's manners, units, error bars, copies."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import caveat
from caveat.errors import InputTypeError, ParameterError
from caveat.estimators import PBPRegressor
from caveat.estimators import pbp as module


def rows(n_rows=80):
    generator = np.random.default_rng(0)
    x = generator.normal(size=(n_rows, 3)) * [1.0, 5.0, 0.2] + 3.0
    y = 20.0 * np.abs(x[:, 0] - 3.0) + generator.normal(size=n_rows)
    return x, y


@pytest.fixture(scope="module")
def fitted():
    return PBPRegressor((10,), n_epochs=20, random_state=0).fit(*rows(150))


def test_all_checks_of_scikit_learn():
    found = check_estimator(PBPRegressor((6,), n_epochs=3), on_fail=None, on_skip=None)
    failed = {r["check_name"]: r["exception"] for r in found if r["status"] == "failed"}
    assert len(found) > 40 and failed == {}


def test_it_learns_and_knows_its_noise(fitted):
    x, y = rows(400)
    new, truth = x[150:], y[150:]
    mean, std = fitted.predict(new, return_std=True)
    assert fitted.score(new, truth) > 0.9
    assert 0.5 < np.sqrt(np.mean(((truth - mean) / std) ** 2)) < 1.7
    lower, upper = fitted.predict_interval(new, 0.9)
    np.testing.assert_allclose(upper - lower, 2 * stats.norm.ppf(0.95) * std)
    assert fitted.predict([[60.0, 3.0, 3.0]], return_std=True)[1][0] > 3 * std.mean()


def test_answers_are_those_of_one_gaussian(fitted):
    x, y = rows()
    found = fitted.predictive(x)
    assert isinstance(found, caveat.RegressionPredictive)
    mean, std = fitted.predict(x, return_std=True)
    exact = stats.norm.logpdf(y, mean, std)
    np.testing.assert_allclose(found.log_prob(torch.from_numpy(y)), exact)
    assert fitted.log_likelihood(x, y) == pytest.approx(exact.mean())
    np.testing.assert_allclose(1.0 / found.noise_variance, fitted.precision_)
    np.testing.assert_allclose(
        std**2, found.epistemic_variance + 1.0 / fitted.precision_
    )


def test_a_seed_repeats_itself_and_others_differ(fitted):
    x, y = rows()
    settings = {"n_epochs": 2, "random_state": 1}
    a, b = (PBPRegressor((4,), **settings).fit(x, y).predict(x) for _ in range(2))
    np.testing.assert_array_equal(a, b)
    other = PBPRegressor((4,), n_epochs=2, random_state=2).fit(x, y).predict(x)
    assert not np.allclose(a, other)


def test_copies_predict_the_same(fitted):
    x, _ = rows()
    for copied in (deepcopy(fitted), pickle.loads(pickle.dumps(fitted))):
        for a, b in zip(
            copied.predict(x, return_std=True),
            fitted.predict(x, return_std=True),
            strict=True,
        ):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(NotFittedError):
        clone(fitted).predict(x)


def test_names_and_sparse_rows(fitted):
    x, y = rows()
    frame = pd.DataFrame(x, columns=["a", "b", "c"])
    settings = {"hidden": (4,), "n_epochs": 2, "random_state": 0}
    named, plain = (PBPRegressor(**settings).fit(each, y) for each in (frame, x))
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert named.n_features_in_ == 3
    np.testing.assert_allclose(named.predict(frame), plain.predict(x))
    thin = sparse.csr_matrix(x)
    np.testing.assert_array_equal(fitted.predict(thin), fitted.predict(x))


@pytest.mark.parametrize("n_rows", [2, 5])
def test_few_rows_and_constant_columns_give_finite_answers(n_rows):
    x, y = rows(n_rows)
    x[:, 1] = 4.0
    for targets in (y, np.full(n_rows, 3.0)):
        model = PBPRegressor((5,), n_epochs=3, random_state=0).fit(x, targets)
        mean, std = model.predict(x + 100.0, return_std=True)
        assert np.isfinite(mean).all() and (std > 0).all() and np.isfinite(std).all()


def test_a_line_needs_no_hidden_layer():
    x, _ = rows()
    model = PBPRegressor((), n_epochs=10, random_state=0).fit(x, 2.0 * x[:, 1] + 1.0)
    assert model.score(x, 2.0 * x[:, 1] + 1.0) > 0.99


@pytest.mark.parametrize("hidden", [50, "50", None])
def test_widths_that_are_none_are_refused(hidden):
    with pytest.raises(InputTypeError, match="tuple of widths"):
        PBPRegressor(hidden).fit(*rows())


@pytest.mark.parametrize(
    "settings", [{"hidden": (0,)}, {"n_epochs": 0}, {"n_epochs": -1}]
)
def test_numbers_out_of_range_are_refused(settings):
    with pytest.raises(ParameterError, match=next(iter(settings))):
        PBPRegressor(**settings).fit(*rows())


def test_weights_of_rows_and_missing_values_are_refused():
    x, y = rows()
    with pytest.raises(TypeError, match="sample_weight"):
        PBPRegressor().fit(x, y, sample_weight=np.ones(len(y)))
    x[0, 0] = np.nan
    with pytest.raises(ParameterError, match="Impute them first"):
        PBPRegressor().fit(x, y)


def test_an_interrupted_fit_leaves_the_last_one(fitted, monkeypatch):
    x, y = rows()
    model = deepcopy(fitted)

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "fit_pbp", stop)
    with pytest.raises(KeyboardInterrupt):
        model.fit(x, y + 100.0)
    np.testing.assert_array_equal(model.predict(x), fitted.predict(x))


def test_progress_is_told_when_asked_for(capfd, monkeypatch):
    x, y = rows(20)
    monkeypatch.setattr("caveat._progress._PATIENCE", 0.0)
    PBPRegressor((3,), n_epochs=2, progress=True).fit(x, y)
    assert "rows absorbed" in capfd.readouterr().err
    PBPRegressor((3,), n_epochs=2).fit(x, y)
    assert capfd.readouterr().err == ""
