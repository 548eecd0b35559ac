"""Frames of pandas and polars where arrays are taken: the same numbers come out."""

import numpy as np
import pytest
import torch
from torch import nn

import caveat
from caveat.decisions import Coverage, conformal, defer
from caveat.evaluation import evaluate

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3))
Y = X[:, 0] + 0.1 * rng.normal(size=40)
LABELS = (Y > 0).astype(int)
NAMES = ["a", "b", "c"]
FRAMES = {
    "pandas": (pandas.DataFrame(X, columns=NAMES), pandas.Series),
    "polars": (polars.DataFrame(X, schema=NAMES), polars.Series),
}
SMALL = {"preset": None, "hidden": (6,), "n_draws": 10, "random_state": 0}
REGRESSORS = {
    "dropout": lambda: caveat.DropoutRegressor(**SMALL, precision=20.0),
    "linear": lambda: caveat.BayesianDropoutRegression(0.1),
    "pbp": lambda: caveat.PBPRegressor(hidden=(5,), n_epochs=2, random_state=0),
}
CLASSIFIERS = {
    "dropout": lambda: caveat.DropoutClassifier(**SMALL),
    "linear": lambda: caveat.BayesianDropoutClassifier(0.1),
}


@pytest.fixture(params=FRAMES)
def frame(request):
    return FRAMES[request.param]


@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(frame, name):
    table, series = frame
    expected = REGRESSORS[name]().fit(X, Y).predict(X)
    fitted = REGRESSORS[name]().fit(table, series(Y))
    np.testing.assert_allclose(fitted.predict(table), expected, rtol=1e-6)
    found = fitted.predictive(table)
    evaluated = evaluate(found, series(Y))
    assert str(evaluated) == str(evaluate(found, Y))


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(frame, name):
    table, series = frame
    expected = CLASSIFIERS[name]().fit(X, LABELS).predict_proba(X)
    fitted = CLASSIFIERS[name]().fit(table, series(LABELS))
    np.testing.assert_allclose(fitted.predict_proba(table), expected, rtol=1e-6)


@pytest.fixture(scope="module")
def mc():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(3, 9), nn.ReLU(), nn.Dropout(0.3), nn.Linear(9, 1)
        )
    return caveat.MCDropout(net, seed=0)


def test_models_and_what_reads_their_predictives(frame, mc):
    table, series = frame
    expected = mc.regress(torch.tensor(X).float(), precision=4.0, n_draws=20)
    found = mc.regress(table, precision=4.0, n_draws=20)
    torch.testing.assert_close(found.mean, expected.mean)
    y = series(Y)
    fitted = mc.regress(
        table, precision="fit", calibration=(table, y), n_draws=20
    ).precision
    arrays = (torch.tensor(X).float(), Y)
    same = mc.regress(arrays[0], precision="fit", calibration=arrays, n_draws=20)
    torch.testing.assert_close(fitted, same.precision)
    one, other = (conformal(found, known, level=0.8) for known in (y, Y))
    left, right = (each.apply(found).interval(0.8) for each in (one, other))
    torch.testing.assert_close(left, right)
    assert str(evaluate(found, y)) == str(evaluate(found, Y))


def test_frames_out_keep_the_index(mc):
    found = mc.regress(torch.tensor(X).float(), precision=4.0, n_draws=20)
    index = pandas.Index([f"row {i}" for i in range(40)], name="id")
    table = found.to_frame(level=0.9, index=index)
    assert list(table.index) == list(index)
    same = found.to_frame(level=0.9, backend="polars")
    np.testing.assert_allclose(table["lower"], same["lower"].to_numpy())


def test_deferral_takes_columns(frame, mc):
    table, series = frame
    found = mc.regress(table, precision=4.0, n_draws=20)
    one, other = (defer(found, known, target=Coverage(0.7)) for known in (series(Y), Y))
    assert str(one) == str(other)
