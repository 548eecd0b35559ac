"""Labels of plus and minus one, and one class against the rest."""

import doctest

import numpy as np
import pytest
import scipy.stats
import torch
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from caveat.errors import ParameterError
from caveat.estimators import BayesianDropoutClassifier, BayesianDropoutRegression
from caveat.estimators.linear import classifier as module
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
    model = BayesianDropoutClassifier().fit(x, y)
    assert len({id(posterior.design) for posterior in model.posteriors_}) == 1


def test_one_class_is_refused():
    with pytest.raises(ParameterError, match=r"two classes\. Got one class"):
        BayesianDropoutClassifier().fit([[1.0], [2.0]], [1, 1])


def test_examples():
    result = doctest.testmod(module)
    assert result.attempted > 0
    assert result.failed == 0
