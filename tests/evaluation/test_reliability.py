"""Reliability against scikit-learn, by hand, and what right probabilities look like."""

import numpy as np
import pytest
import torch
from sklearn.calibration import calibration_curve

from caveat.errors import ParameterError
from caveat.evaluation import ReliabilityCurve, ece
from caveat.predictive import CategoricalPredictive
from tests.statistics import assert_mean_is


def sure(confidences: list[float]) -> CategoricalPredictive:
    """Two classes; class 0 has the given probability."""
    top = torch.tensor(confidences, dtype=torch.float64)
    return CategoricalPredictive.from_logits(
        torch.stack([top, 1 - top], -1).log()[None]
    )


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_curve_is_that_of_scikit_learn(classifier, labels, strategy):
    curve = ReliabilityCurve.from_predictive(
        classifier, labels, n_bins=10, strategy=strategy
    )
    right = (classifier.label == labels).numpy()
    top = classifier.probs.amax(1).numpy()
    expected = calibration_curve(right, top, n_bins=10, strategy=strategy)
    np.testing.assert_allclose(curve.accuracy, expected[0])
    np.testing.assert_allclose(curve.confidence, expected[1])
    assert curve.counts.sum() == 400


def test_calibration_error_by_hand():
    predictive = sure([0.9, 0.9, 0.9, 0.9, 0.6, 0.6])
    curve = ReliabilityCurve.from_predictive(predictive, [0, 0, 1, 1, 0, 0], n_bins=5)
    # |0.5 - 0.9| of four rows, |1 - 0.6| of two
    assert curve.ece.value == pytest.approx((4 * 0.4 + 2 * 0.4) / 6)
    signed = np.array([-0.1, -0.1, 0.9, 0.9, 0.4, 0.4])
    assert curve.ece.error == pytest.approx(signed.std(ddof=1) / np.sqrt(6))
    floor = (np.sqrt(4 * 0.09) + np.sqrt(2 * 0.24)) * np.sqrt(2 / np.pi) / 6
    assert curve.ece_floor == pytest.approx(floor)


def test_calibration_error_is_the_weighted_distance(classifier, labels):
    curve = ReliabilityCurve.from_predictive(classifier, labels)
    gaps = np.abs(curve.accuracy - curve.confidence)
    expected = np.average(gaps, weights=curve.counts)
    assert ece(classifier, labels).value == pytest.approx(expected)


def test_floor_is_the_mean_error_of_right_probabilities(classifier, generator):
    found, floor = [], None
    for _ in range(200):
        y = torch.multinomial(classifier.probs, 1, generator=generator).squeeze(1)
        curve = ReliabilityCurve.from_predictive(classifier, y, n_bins=8)
        found.append(curve.ece.value)
        floor = curve.ece_floor
    # the floor takes binomials for normal, which is 2 % off at this size
    assert np.mean(found) == pytest.approx(floor, rel=0.05)


def test_standard_error_is_the_spread():
    """Of a clear miscalibration, over 300 sets of 200 rows."""
    generator = torch.Generator().manual_seed(1)
    predictive = sure([0.9] * 200)
    found = []
    for _ in range(300):
        y = (torch.rand(200, generator=generator) > 0.7).long()
        found.append(ece(predictive, y))
    values = torch.tensor([f.value for f in found])
    assert_mean_is(values, 0.2)
    mean_error = np.mean([f.error for f in found])
    assert mean_error == pytest.approx(np.sqrt(0.7 * 0.3 / 200), rel=0.02)
    assert float(values.std()) == pytest.approx(mean_error, rel=0.2)


def test_errors_of_bins(classifier, labels):
    curve = ReliabilityCurve.from_predictive(classifier, labels, n_bins=3)
    scores = (curve.accuracy - curve.confidence) / curve.accuracy_error
    assert (np.abs(scores) < 4).all()


def test_bad_bins(classifier, labels):
    with pytest.raises(ParameterError, match="n_bins"):
        ece(classifier, labels, n_bins=0)
    with pytest.raises(ParameterError, match=r"'uniform' or 'quantile'. Got 'width'"):
        ece(classifier, labels, strategy="width")


def test_one_bin(classifier, labels):
    curve = ReliabilityCurve.from_predictive(classifier, labels, n_bins=1)
    assert curve.counts.tolist() == [400]
