"""The best pair is the best by its criterion, computed by hand."""

import doctest

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.errors import CaveatWarning, ParameterError
from caveat.estimators import BayesianDropoutRegression, BayesianDropoutRegressionCV
from caveat.estimators.linear import cross_validation
from caveat.maxent.linear import generalised_cross_validation
from tests.maxent.linear.reference import random_data

RATES, PRECISIONS = (0.0, 0.3, 0.8), (0.01, 1.0)


def refits(x, y, rate, precision):
    """Leave-one-out errors and log densities by refitting the estimator."""
    errors, densities = [], []
    for row in range(len(y)):
        model = BayesianDropoutRegression(rate, precision)
        model.fit(np.delete(x, row, 0), np.delete(y, row))
        errors.append(y[row] - model.predict(x[[row]])[0])
        densities.append(model.log_likelihood(x[[row]], y[[row]]))
    return np.array(errors), np.array(densities)


def by_hand(criterion, x, y, rate, precision):
    model = BayesianDropoutRegression(rate, precision).fit(x, y)
    if criterion == "gcv":
        return -generalised_cross_validation(model.posterior_)
    if criterion == "evidence":
        return model.log_evidence()
    errors, densities = refits(x, y, rate, precision)
    return densities.mean() if "density" in criterion else -np.mean(errors**2)


@pytest.mark.parametrize(
    "criterion", ["exact_loo", "exact_loo_log_density", "gcv", "evidence"]
)
def test_scores_by_hand(criterion):
    x, y = random_data(12, 4)
    model = BayesianDropoutRegressionCV(RATES, PRECISIONS, criterion=criterion)
    model.fit(x, y)
    expected = [[by_hand(criterion, x, y, f, p) for p in PRECISIONS] for f in RATES]
    assert_allclose(model.scores_, expected)
    best = np.unravel_index(np.argmax(expected), (3, 2))
    assert model.drop_rate_ == RATES[best[0]]
    assert model.prior_precision_ == PRECISIONS[best[1]]
    assert model.best_score_ == model.scores_.max()
    single = BayesianDropoutRegression(model.drop_rate_, model.prior_precision_)
    assert_allclose(model.coef_, single.fit(x, y).coef_)


@pytest.mark.parametrize("criterion", ["loo", "loo_log_density"])
def test_the_fast_scores_are_near_the_exact_ones(criterion):
    x, y = random_data(200, 4)
    fast, exact = (
        BayesianDropoutRegressionCV(RATES, PRECISIONS, criterion=each).fit(x, y)
        for each in (criterion, f"exact_{criterion}")
    )
    assert_allclose(fast.scores_[0], exact.scores_[0], rtol=1e-8)  # f = 0: exact
    assert_allclose(fast.scores_, exact.scores_, rtol=0.02)
    assert not np.allclose(fast.scores_[1:], exact.scores_[1:], rtol=1e-6)


def test_a_rescaled_world_prefers_dropout():
    """Ridge regression suffers from badly scaled features, dropout does not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(25, 20))
    y = x @ rng.normal(size=20) + rng.normal(size=25)
    scaled = x * np.exp(3 * rng.normal(size=20))
    model = BayesianDropoutRegressionCV(criterion="loo").fit(scaled, y)
    assert model.drop_rate_ > 0.0


def test_wrong_settings():
    x, y = random_data(12, 4)
    with pytest.raises(ParameterError, match="criterion must be one of 'loo'"):
        BayesianDropoutRegressionCV(criterion="aic").fit(x, y)
    with pytest.raises(ParameterError, match="at least one value"):
        BayesianDropoutRegressionCV(drop_rates=()).fit(x, y)
    with pytest.raises(ValueError, match="minimum of 3"):
        BayesianDropoutRegressionCV().fit(x[:2], y[:2])


def test_examples():
    result = doctest.testmod(cross_validation)
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("criterion", sorted(cross_validation.CRITERIA))
def test_a_constant_response_can_be_fitted(criterion):
    x = random_data(9, 2)[0]
    model = BayesianDropoutRegressionCV((0.0, 0.5), (0.1, 1.0), criterion=criterion)
    with pytest.warns(CaveatWarning, match="fitted without any error"):
        model.fit(x, np.full(9, 0.1))
    assert model.predict(x[:2]).tolist() == [0.1, 0.1]
