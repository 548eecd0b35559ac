"""What the estimators share: rows as they are checked, networks on the way back."""

import numpy as np
import pytest
import torch
from scipy import sparse

from caveat.errors import ParameterError
from caveat.estimators import DropoutClassifier, DropoutRegressor
from caveat.estimators.base import counted_rows, dense, regression_rows
from tests.estimators.dropout_data import quick_regressor, rows


def test_rows_are_dense_and_targets_as_they_were():
    x, y = rows(6)
    model = quick_regressor()
    found, targets = regression_rows(model, sparse.csr_matrix(x), y.tolist(), least=2)
    assert np.array_equal(found, x) and np.array_equal(targets, y)
    assert targets.dtype == np.float64 and model.n_features_in_ == 3
    assert regression_rows(model, x, y[:, None], least=2)[1].shape == (6, 1)
    with pytest.raises(ValueError, match="minimum of 7"):
        regression_rows(model, x, y, least=7)


def test_dense_leaves_arrays_alone():
    x = np.eye(2)
    assert dense(x) is x
    assert np.array_equal(dense(sparse.coo_array(x)), x)


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_networks_make_the_fleet_that_they_were(noise):
    """What ``load`` builds from the networks draws what ``fit`` has kept."""
    x, y = rows()
    given = {"hidden": (4, 3), "input_drop_rate": 0.1, "n_members": 2}
    model = quick_regressor(precision=4.0, noise=noise, **given).fit(x, y)
    again, kept = model._trained(), model._ensemble.trained
    assert torch.equal(again.parameters, kept.parameters)
    inputs = model.scaling_.inputs(x)
    draws = [t.draws(inputs, n_draws=5, seed=3) for t in (again, kept)]
    assert torch.equal(*draws)


def test_rows_are_asked_for_in_parts(monkeypatch):
    x, y = rows()
    model = quick_regressor(precision=4.0).fit(x, y)
    monkeypatch.setattr("caveat.estimators.base._AT_ONCE", 50 * 7)
    assert [len(part) for part in model._parts(x)] == [7] * 8 + [4]


def test_rows_of_weight_zero_are_as_if_absent():
    """Of the pool, too, which counts rows and looks at their spread."""
    x, y = rows(12)
    rng = np.random.default_rng(0)
    more = np.vstack([x, rng.normal(size=(90, 3))])
    weight = np.r_[np.full(12, 5.0), np.zeros(90)]
    pool = DropoutRegressor(n_draws=20, random_state=0)
    alone = pool.fit(x, y).predict(x, return_std=True)
    far = np.r_[y, 1e3 + rng.normal(size=90)]
    beside = pool.fit(more, far, sample_weight=weight).predict(x, return_std=True)
    assert np.array_equal(alone, beside)
    sign = y > np.median(y)
    labels = np.r_[sign.astype(int), np.full(90, 7)]
    model = DropoutClassifier(n_draws=20, random_state=0)
    expected = model.fit(x, sign.astype(int)).predict_proba(x)
    found = model.fit(more, labels, sample_weight=weight).predict_proba(x)
    assert np.array_equal(found, expected)


def test_some_rows_must_count():
    with pytest.raises(ParameterError, match=r"at least 2 rows\. Got 1 of 3"):
        counted_rows([0.0, 3.0, 0.0], np.eye(3), np.ones(3), least=2)
