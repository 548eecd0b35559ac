"""Labels of plus and minus one, and one class against the rest."""

import doctest

import numpy as np
import pytest
import scipy.special
import scipy.stats
import torch
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from caveat.errors import ParameterError, ShapeError
from caveat.estimators import BayesianDropoutClassifier, BayesianDropoutRegression
from caveat.estimators.linear import classifier as module
from caveat.evaluation import evaluate
from tests.maxent.linear.reference import random_data


def test_two_classes_are_a_regression_on_signs():
    x, y = random_data(40, 5)
    labels = np.where(y > np.median(y), "up", "down")
    model = BayesianDropoutClassifier(0.3, 0.5).fit(x, labels)
    signs = np.where(labels == "up", 1.0, -1.0)
    regression = BayesianDropoutRegression(0.3, 0.5).fit(x, signs)
    assert_allclose(model.coef_[0], regression.coef_)
    predictive = regression.predictive(x)
    law = scipy.stats.t(39.0, predictive.location.numpy(), predictive.scale.numpy())
    assert_allclose(model.predict_proba(x)[:, 1], law.sf(0.0))
    assert_allclose(model.predict_proba(x).sum(1), 1.0)
    expected = np.where(regression.predict(x) > 0, "up", "down")
    assert (model.predict(x) == expected).all()
    assert model.score(x, labels) > 0.8


@pytest.mark.parametrize("drop_to", ["zero", "mean"])
def test_draws_of_the_posterior_tend_to_the_exact_probabilities(drop_to):
    """And their entropies to those of the Student-t's Gaussian and gamma parts."""
    x, y = random_data(40, 5)
    model = BayesianDropoutClassifier(0.3, 0.5, drop_to=drop_to).fit(x, y > 0.3)
    found = model.predictive(x, n_draws=20_000, random_state=0)
    gap = (found.probs.numpy() - model.predict_proba(x)) / found.mean_error.numpy()
    assert np.abs(gap).max() < 5
    posterior = model.posteriors_[0]
    location, leverage = posterior.predict(x, posterior.design.noise.mean)
    rng = np.random.default_rng(1)
    precision = rng.gamma(posterior.shape, size=(20_000, 1)) / posterior.rate
    spread = np.sqrt(leverage) * rng.standard_normal((20_000, 1))
    positive = scipy.stats.norm.cdf(location * np.sqrt(precision) + spread)
    entropies = scipy.special.entr(positive) + scipy.special.entr(1 - positive)
    error = np.sqrt(2) * entropies.std(0) / np.sqrt(20_000)  # of both sides
    assert (
        np.abs(entropies.mean(0) - found.expected_entropy.numpy()) < 5 * error
    ).all()
    assert (found.mutual_information > 0).all()


def test_draws_of_several_classes():
    x, y = load_iris(return_X_y=True)
    model = BayesianDropoutClassifier(0.1, 0.01).fit(x, y)
    found = model.predictive(x, n_draws=400, random_state=0)
    assert found.draws.shape == (400, 150, 3)
    assert_allclose(found.probs, model.predict_proba(x), atol=0.02)
    again = model.predictive(x[:7], n_draws=400, random_state=0)
    assert_allclose(again.probs, found.probs[:7], rtol=1e-12)  # a draw is a function
    assert evaluate(found, y)["accuracy"].value > 0.75
    with pytest.raises(ParameterError, match="n_draws"):
        model.predictive(x, n_draws=0)


def test_three_classes_are_each_against_the_rest():
    x, y = load_iris(return_X_y=True)
    model = BayesianDropoutClassifier(0.1, 0.01).fit(x, y)
    positive = np.column_stack(
        [
            1
            - BayesianDropoutRegression(0.1, 0.01)
            .fit(x, np.where(y == k, 1.0, -1.0))
            .predictive(x)
            .cdf(torch.zeros(len(x)).double())
            .numpy()
            for k in range(3)
        ]
    )
    expected = positive / positive.sum(1, keepdims=True)
    assert_allclose(model.predict_proba(x), expected, rtol=1e-9)
    assert (model.predict(x) == expected.argmax(1)).all()
    assert model.decision_function(x).shape == (150, 3)
    assert model.score(x, y) > 0.75


def test_the_regressions_share_one_factorisation():
    x, y = load_iris(return_X_y=True)
    model = BayesianDropoutClassifier(drop_to="mean").fit(x, y)
    assert len({id(posterior.design) for posterior in model.posteriors_}) == 1


def test_one_class_is_refused():
    with pytest.raises(ParameterError, match=r"two classes\. Got one class"):
        BayesianDropoutClassifier().fit([[1.0], [2.0]], [1, 1])


def test_examples():
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0


def test_log_likelihood_is_that_of_the_probabilities():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 2))
    for y in (
        np.where(x[:, 0] > 0, "up", "down"),
        rng.choice(["a", "b", "c"], size=30),
    ):
        model = BayesianDropoutClassifier(0.2).fit(x, y)
        probs = model.predict_proba(x)
        places = [model.classes_.tolist().index(label) for label in y]
        wanted = np.log(probs[np.arange(30), places]).mean()
        assert_allclose(model.log_likelihood(x, y), wanted)
        with pytest.raises(ParameterError, match="labels seen in fit"):
            model.log_likelihood(x, ["other"] * 30)
        with pytest.raises(ShapeError, match="one label per row, 30"):
            model.log_likelihood(x, y[:3])
