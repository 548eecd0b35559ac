"""The estimator over the posterior: worked example, predictives, shapes, errors."""

import doctest
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
import torch
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from caveat.errors import CaveatWarning, ParameterError, ShapeError
from caveat.estimators import BayesianDropoutRegression
from caveat.estimators.linear import regression, settings
from tests.maxent.linear.reference import NEW, X, Y, random_data
from tests.statistics import assert_mean_is


def worked_example(**changes) -> BayesianDropoutRegression:
    model = BayesianDropoutRegression(0.4, 0.5, fit_intercept=False)
    return model.set_params(**changes).fit(X, Y)


def test_worked_example():
    model = worked_example()
    assert_allclose(model.coef_, [0.677269288047, 0.308594862033], atol=1e-12)
    assert_allclose(model.effective_coef_, 0.6 * model.coef_)
    assert model.intercept_ == 0.0
    assert_allclose(model.log_normalizer(), -4.512345163291, atol=1e-12)
    assert_allclose(model.log_evidence(), -3.696618667085, atol=1e-12)
    averaged, undropped = model.predictive(NEW), model.undropped_predictive(NEW)
    assert_allclose(averaged.location, [0.080780492038], atol=1e-12)
    assert_allclose(averaged.scale**2, [0.469967310050], atol=1e-12)
    assert_allclose(undropped.location, [0.134634153397], atol=1e-12)
    assert_allclose(undropped.scale**2, [0.638958114098], atol=1e-12)
    assert float(averaged.df) == 4.0
    dropped = model.dropped_predictive(NEW)
    assert dropped.n_draws == 0
    assert_allclose(dropped.mean, [0.080780492038], atol=1e-12)
    assert_allclose(dropped.variance, [1.160347585348], atol=1e-11)
    half = torch.tensor([0.5]).double()
    assert_allclose(dropped.log_prob(half).exp(), [0.404638444012], atol=1e-12)
    positive = 1 - dropped.cdf(torch.zeros(1).double())
    assert_allclose(positive, [0.538977810791], atol=1e-12)


def test_predict_interval_and_density():
    model = worked_example(fit_intercept=True)
    mean, std = model.predict(NEW, return_std=True)
    assert_allclose(mean, model.predict(NEW))
    assert_allclose(mean, NEW @ model.effective_coef_ + model.intercept_)
    predictive = model.predictive(NEW)
    law = scipy.stats.t(3.0, mean, predictive.scale.numpy())
    assert_allclose(std, law.std())
    lower, upper = model.predict_interval(NEW, 0.9)
    assert_allclose([lower, upper], law.interval(0.9))
    assert_allclose(model.log_likelihood(NEW, [0.3]), law.logpdf(0.3))


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("shape", [(20, 6), (12, 40)])
def test_sparse_and_dense_agree(fit_intercept, shape):
    x, y = random_data(*shape, sparse=True)
    model = BayesianDropoutRegression(0.3, 0.5, fit_intercept=fit_intercept)
    dense = clone(model).fit(x.toarray(), y)
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_matrix):
        for solver in ("auto", "primal", "dual", "krylov"):
            sparse = clone(model).set_params(solver=solver).fit(kind(x), y)
            assert_allclose(sparse.coef_, dense.coef_, rtol=1e-6, atol=1e-8)
            assert_allclose(
                sparse.predict(kind(x[:4]), return_std=True),
                dense.predict(x[:4].toarray(), return_std=True),
                rtol=1e-6,
            )


def test_large_data_are_solved_by_iteration(monkeypatch):
    x, y = random_data(40, 200, sparse=True)
    exact = BayesianDropoutRegression(0.3).fit(x, y)
    monkeypatch.setattr(settings, "EXACT_UP_TO", 10)
    iterated = BayesianDropoutRegression(0.3).fit(x, y)
    assert "factor" not in vars(iterated.posterior_.design)  # it waits
    assert_allclose(iterated.coef_, exact.coef_, rtol=1e-6, atol=1e-9)
    assert_allclose(iterated.log_evidence(), exact.log_evidence(), rtol=1e-8)
    _, std = iterated.predict(x[:3], return_std=True)
    assert_allclose(std, exact.predict(x[:3], return_std=True)[1], rtol=1e-8)


def test_posterior_draws_predict_the_undropped_predictive():
    x, y = random_data(30, 3)
    model = BayesianDropoutRegression(0.3).fit(x, y)
    weights, intercept, variance = model.sample_posterior(20_000, random_state=0)
    responses = torch.from_numpy(intercept[:, None] + weights @ x[:2].T)
    assert_mean_is(responses, model.undropped_predictive(x[:2]).location)
    assert_mean_is(torch.from_numpy(variance), model.posterior_.noise_variance)
    again = model.sample_posterior(20_000, random_state=0)
    assert np.array_equal(again.weights, weights)
    generator = np.random.default_rng(0)
    assert model.sample_posterior(random_state=generator).weights.shape == (1, 3)


def test_many_features_draw_masks():
    x, y = random_data(30, 14)
    model = BayesianDropoutRegression(0.3).fit(x, y)
    dropped = model.dropped_predictive(x[:2], n_draws=500, random_state=0)
    assert dropped.n_draws == 500
    gap = (dropped.mean - model.predictive(x[:2]).mean).abs()
    assert bool((gap < 5 * dropped.mean_error).all())
    wider = dropped.variance > model.predictive(x[:2]).variance
    assert bool(wider.all())


def test_rates_per_feature_groups_and_noise():
    x, y = random_data(30, 4)
    plain = BayesianDropoutRegression(0.0).fit(x, y)
    rates = BayesianDropoutRegression([0.0, 0.0, 0.0, 0.9]).fit(x, y)
    groups = BayesianDropoutRegression(0.3, groups=["a", "a", "b", "b"]).fit(x, y)
    gaussian = BayesianDropoutRegression(0.3, noise="gaussian").fit(x, y)
    coefficients = [m.coef_ for m in (plain, rates, groups, gaussian)]
    for first, second in pairwise(coefficients):
        assert np.abs(first - second).max() > 1e-3
    assert_allclose(gaussian.coef_, gaussian.effective_coef_)


def test_proper_prior_of_the_variance():
    model = BayesianDropoutRegression(0.4, 0.5, variance_prior=(2.0, 1.0)).fit(X, Y)
    assert model.posterior_.shape == 2.0 + 1.5
    assert np.isfinite(model.predict(NEW, return_std=True)[1]).all()


def test_two_observations_have_no_standard_deviation():
    model = BayesianDropoutRegression(0.4, 0.5, fit_intercept=False).fit(X[:2], Y[:2])
    with pytest.warns(CaveatWarning, match="has no variance"):
        mean, std = model.predict(NEW, return_std=True)
    assert np.isfinite(mean).all() and np.isinf(std).all()
    lower, upper = model.predict_interval(NEW)
    assert np.isfinite(upper - lower).all()


def test_features_that_nothing_holds_are_left_out():
    x = np.column_stack([X, np.zeros(4)])
    model = BayesianDropoutRegression(0.4, 0.0, fit_intercept=False)
    with pytest.warns(CaveatWarning, match="1 of 3 features are constant"):
        model.fit(x, Y)
    assert model.coef_[2] == 0.0
    expected = BayesianDropoutRegression(0.4, 0.0, fit_intercept=False).fit(X, Y)
    assert_allclose(model.coef_[:2], expected.coef_)


def test_in_a_pipeline():
    x, y = random_data(60, 5)
    model = make_pipeline(StandardScaler(), BayesianDropoutRegression(0.1))
    assert cross_val_score(model, x, y).mean() > 0.5


def test_nothing_before_fit():
    model = BayesianDropoutRegression()
    calls = (model.predict, model.predictive, model.undropped_predictive)
    for call in (*calls, model.dropped_predictive, model.predict_interval):
        with pytest.raises(NotFittedError):
            call(X)
    for answer in (model.log_evidence, model.log_normalizer, model.sample_posterior):
        with pytest.raises(NotFittedError):
            answer()


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"drop_rate": 1.0}, ParameterError, r"\[0, 1\)"),
        ({"drop_rate": [0.1] * 3}, ShapeError, r"shape \(2,\). Got the shape \(3,\)"),
        ({"prior_precision": -1.0}, ParameterError, r"at least 0\. Got -1"),
        ({"prior_precision": "1"}, ParameterError, "of type str"),
        ({"prior_precision": np.inf}, ParameterError, "finite"),
        ({"noise": "poisson"}, ParameterError, "noise must be one of"),
        ({"drop_to": "mean"}, ParameterError, "needs fit_intercept=True"),
        ({"variance_prior": (1.0,)}, ParameterError, "pair"),
        ({"variance_prior": (1.0, 0.0)}, ParameterError, "above 0"),
        ({"solver": "svd"}, ParameterError, "solver must be one of 'auto'"),
        (
            {"solver": "krylov", "drop_rate": 0.0, "prior_precision": 0.0},
            ParameterError,
            "proper prior",
        ),
    ],
)
def test_wrong_settings(changes, error, message):
    with pytest.raises(error, match=message):
        worked_example(**changes)


def test_an_underdetermined_flat_model_is_refused():
    x, y = random_data(3, 5)
    with pytest.raises(ParameterError, match="improper"):
        BayesianDropoutRegression(0.0, 0.0).fit(x, y)


def test_examples():
    result = doctest.testmod(regression)
    assert result.attempted > 0
    assert result.failed == 0


def test_one_row_with_an_intercept_leaves_nothing_to_tell_the_noise_by():
    with pytest.raises(ParameterError, match=r"n_samples=1 .* Pass at least 2 rows"):
        BayesianDropoutRegression().fit([[1.0, 2.0]], [3.0])
    for model in (
        BayesianDropoutRegression(fit_intercept=False),
        BayesianDropoutRegression(variance_prior=(1.0, 1.0)),
    ):
        found = model.fit([[1.0, 2.0]], [3.0]).predictive([[1.0, 2.0]])
        assert found.location.isfinite().all() and (found.scale > 0).all()


@pytest.mark.parametrize("value", [0.0, 0.1, 1e9 / 3])
def test_a_constant_response_makes_points_and_says_so(value):
    x, y = random_data(10, 3)[0], np.full(10, value)
    with pytest.warns(CaveatWarning, match="fitted without any error"):
        model = BayesianDropoutRegression(0.3).fit(x, y)
    found = model.predictive(x)
    assert model.predict(x).tolist() == y.tolist()
    assert model.log_likelihood(x, y) == np.inf
    assert model.log_likelihood(x, y + 1.0) == -np.inf
    assert_allclose(found.crps(torch.from_numpy(y + 2.0)), 2.0, rtol=1e-6)
    dropped = model.dropped_predictive(x)
    assert_allclose(dropped.crps(torch.from_numpy(y + 2.0)), 2.0, rtol=1e-6)
    fair = BayesianDropoutRegression(0.3, variance_prior=(1.0, 1.0)).fit(x, y)
    assert np.isfinite(fair.log_likelihood(x, y))


def test_a_column_far_from_0_is_told(recwarn):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 2)) + np.array([0.0, 20.0])
    y = x.sum(1)
    with pytest.warns(CaveatWarning, match=r"1 of 2 features .* column 1 is 2\d"):
        wide = BayesianDropoutRegression().fit(x, y)
    recwarn.clear()
    narrow = BayesianDropoutRegression(drop_to="mean").fit(x, y)
    BayesianDropoutRegression().fit(x - x.mean(0), y)
    BayesianDropoutRegression(drop_rate=0.0).fit(x, y)
    BayesianDropoutRegression(fit_intercept=False).fit(x, y)
    assert not recwarn
    shares = [model.effective_coef_[1] for model in (wide, narrow)]
    assert shares[0] < 0.1 and shares[1] > 0.4  # of 1, which is kept half of the time
