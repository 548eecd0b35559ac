"""Losses of rows, and what is no loss."""

import numpy as np
import pytest
import torch

from caveat.errors import ParameterError, ShapeError
from caveat.evaluation import absolute_error, misclassified, off_by_more_than
from caveat.evaluation.losses import losses_of
from caveat.predictive import GaussianPredictive


def test_wrong_classes(classifier):
    y = classifier.label.clone()
    y[:5] = (y[:5] + 1) % 4
    assert misclassified(classifier, y).tolist() == [1.0] * 5 + [0.0] * 395


def test_distances():
    predictive = GaussianPredictive.from_draws(torch.zeros(2, 3, 1), precision=1.0)
    y = [1.0, -2.0, 0.5]
    np.testing.assert_allclose(absolute_error(predictive, y), [1.0, 2.0, 0.5])
    assert off_by_more_than(1.0)(predictive, y).tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(ParameterError, match="tolerance"):
        off_by_more_than(0.0)


def test_defaults_functions_and_arrays(classifier, labels, regression, outcomes):
    wrong = misclassified(classifier, labels)
    np.testing.assert_array_equal(losses_of(classifier, labels), wrong)
    np.testing.assert_array_equal(
        losses_of(regression, outcomes), absolute_error(regression, outcomes)
    )
    np.testing.assert_array_equal(losses_of(classifier, labels, wrong * 3), wrong * 3)
    squared = losses_of(regression, outcomes, lambda p, y: (p.mean[:, 0] - y).square())
    np.testing.assert_allclose(squared, absolute_error(regression, outcomes) ** 2)


@pytest.mark.parametrize("bad", [-1.0, np.inf])
def test_losses_are_finite_and_not_negative(classifier, labels, bad):
    with pytest.raises(ParameterError, match="at least 0"):
        losses_of(classifier, labels, np.full(400, bad))


def test_losses_are_one_per_row(classifier, labels):
    with pytest.raises(ParameterError, match="NaN"):
        losses_of(classifier, labels, np.full(400, np.nan))
    with pytest.raises(ShapeError, match="400"):
        losses_of(classifier, labels, np.zeros(3))
