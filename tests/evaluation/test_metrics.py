"""Metrics against hand-made cases, scikit-learn, and the truth of simulations."""

import math

import numpy as np
import pytest
import sklearn.metrics
import torch

from caveat.errors import DrawsNotKeptError, ParameterError
from caveat.evaluation import accuracy, brier, log_likelihood, rmse, sharpness
from caveat.predictive import (
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
)
from tests.statistics import assert_mean_is


def test_rmse_is_that_of_scikit_learn(regression, outcomes):
    found = rmse(regression, outcomes)
    mean = regression.mean.squeeze(1)
    expected = sklearn.metrics.root_mean_squared_error(outcomes, mean)
    assert found.value == pytest.approx(expected)


def test_error_of_rmse_is_its_spread():
    generator = torch.Generator().manual_seed(2)
    predictive = GaussianPredictive.from_draws(
        torch.zeros(1, 400, dtype=torch.float64), precision=1.0
    )
    found = [
        rmse(predictive, torch.randn(400, generator=generator, dtype=torch.float64))
        for _ in range(200)
    ]
    values = torch.tensor([f.value for f in found])
    errors = torch.tensor([f.error for f in found])
    # sd(z²)/(2 sqrt n) = sqrt 2 / 40; the sd of 200 values is known to 1 in 20
    assert_mean_is(errors, math.sqrt(2) / 40, z=6)
    assert float(values.std()) == pytest.approx(math.sqrt(2) / 40, rel=0.25)


def test_a_perfect_regression():
    predictive = GaussianPredictive.from_draws(torch.ones(2, 3), precision=1.0)
    assert rmse(predictive, [1.0, 1.0, 1.0]).value == 0.0
    assert rmse(predictive, [1.0, 1.0, 1.0]).error == 0.0


def test_rmse_averages_outputs_within_rows():
    predictive = GaussianPredictive.from_draws(torch.zeros(1, 2, 2), precision=1.0)
    found = rmse(predictive, torch.tensor([[3.0, 4.0], [0.0, 5.0]]))
    assert found.value == pytest.approx(math.sqrt(50 / 4))
    assert found.error == 0.0  # both rows have the same mean square, 12.5


def test_log_likelihood_is_the_mean_of_log_prob(
    regression, outcomes, classifier, labels
):
    exact = regression.log_prob(outcomes[:, None])
    found = log_likelihood(regression, outcomes)
    assert found.value == pytest.approx(float(exact.mean()))
    assert found.error == pytest.approx(float(exact.std() / math.sqrt(300)))
    expected = -sklearn.metrics.log_loss(labels, classifier.probs, labels=range(4))
    assert log_likelihood(classifier, labels).value == pytest.approx(expected)


def test_log_likelihood_needs_draws():
    gathered = GaussianAccumulator(1.0, keep_draws=False)
    gathered.add(torch.zeros(2, 3))
    with pytest.raises(DrawsNotKeptError):
        log_likelihood(gathered.result(), [0.0, 0.0, 0.0])


def test_accuracy_and_brier_are_those_of_scikit_learn(classifier, labels):
    expected = sklearn.metrics.accuracy_score(labels, classifier.label)
    found = accuracy(classifier, labels)
    assert found.value == pytest.approx(expected)
    assert found.error == pytest.approx(math.sqrt(expected * (1 - expected) / 399))
    happened = np.eye(4)[labels]
    squares = ((classifier.probs.numpy() - happened) ** 2).sum(1)
    assert brier(classifier, labels).value == pytest.approx(squares.mean())


def test_binary_brier_is_twice_that_of_scikit_learn(generator):
    logits = torch.randn(3, 50, 2, generator=generator)
    predictive = CategoricalPredictive.from_logits(logits)
    y = torch.randint(2, (50,), generator=generator)
    one = sklearn.metrics.brier_score_loss(
        y, predictive.probs[:, 1], scale_by_half=True
    )
    assert brier(predictive, y).value == pytest.approx(2 * one, rel=1e-5)


def test_labels_of_a_row_are_averaged_first():
    logits = torch.zeros(1, 2, 2, 3)
    logits[..., 0] = 1.0
    predictive = CategoricalPredictive.from_logits(logits)
    found = accuracy(predictive, [[0, 1], [0, 1]])
    assert (found.value, found.error) == (0.5, 0.0)


def test_sharpness(regression, classifier):
    lower, upper = regression.interval(0.5)
    assert sharpness(regression, level=0.5).value == pytest.approx(
        float((upper - lower).mean())
    )
    assert sharpness(classifier).value == pytest.approx(
        float(classifier.entropy.mean())
    )
    with pytest.raises(ParameterError, match="level"):
        sharpness(regression, level=1.0)
