"""Observations come in any container, in the shape of the predictive, or not at all."""

import numpy as np
import pytest
import torch

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.evaluation.targets import observed_labels, observed_values, one_output
from caveat.predictive import CategoricalPredictive, GaussianPredictive


@pytest.mark.parametrize("shape", [(300,), (300, 1)])
@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, list])
def test_a_last_axis_of_one_may_be_missing(regression, shape, kind):
    y = kind(np.arange(300.0).reshape(shape))
    found = observed_values(regression, y)
    assert found.shape == (300, 1) and found.dtype == torch.float64
    np.testing.assert_array_equal(found[:, 0], np.arange(300))


def test_whole_numbers_are_observations(regression):
    assert observed_values(regression, list(range(300))).dtype == torch.float64


def test_nothing_else_is_broadcast(regression):
    for shape in [(1, 300), (300, 2), (299,), ()]:
        with pytest.raises(ShapeError, match=r"\(300, 1\)"):
            observed_values(regression, np.zeros(shape))


def test_bad_observations(regression):
    with pytest.raises(ParameterError, match="finite"):
        observed_values(regression, np.full(300, np.nan))
    with pytest.raises(InputTypeError, match="real numbers"):
        observed_values(regression, ["a"] * 300)
    with pytest.raises(InputTypeError, match="real numbers"):
        observed_values(regression, torch.zeros(300, dtype=torch.bool))


def test_labels_are_class_numbers(classifier):
    assert observed_labels(classifier, [1] * 400).dtype == torch.int64
    with pytest.raises(InputTypeError, match="integer"):
        observed_labels(classifier, np.zeros(400))
    with pytest.raises(ParameterError, match="0 to 3"):
        observed_labels(classifier, [4] * 400)
    with pytest.raises(ShapeError, match="400"):
        observed_labels(classifier, [0] * 3)


def test_the_kind_of_predictive(classifier, regression):
    with pytest.raises(InputTypeError, match=r"regression.*CategoricalPredictive"):
        observed_values(classifier, [0] * 400)
    with pytest.raises(InputTypeError, match=r"classification.*GaussianPredictive"):
        observed_labels(regression, [0] * 300)


def test_no_rows(classifier, regression):
    with pytest.raises(ParameterError, match="at least one row"):
        observed_values(regression[:0], [])
    with pytest.raises(ParameterError, match="at least one row"):
        observed_labels(classifier[:0], [])


def test_one_output():
    predictive = GaussianPredictive.from_draws(torch.zeros(1, 3, 2), precision=1.0)
    with pytest.raises(ShapeError, match=r"one output per row.*\(2,\)"):
        one_output(predictive, torch.zeros(3, 2))


@pytest.mark.parametrize(
    "y",
    [
        [True, False, True],
        np.array([True, False, True]),
        ["1", "2", "3"],
        np.array(["2020-01-01"] * 3, dtype="datetime64[D]"),
        np.ones(3) * 1j,
        ["a", "b", "c"],
    ],
    ids=lambda y: str(np.asarray(y).dtype),
)
def test_what_is_no_number_is_no_observation(y):
    predictive = GaussianPredictive.from_draws(torch.zeros(2, 3), precision=1.0)
    with pytest.raises(InputTypeError, match=r"y must be real numbers\. Got"):
        observed_values(predictive, y)


@pytest.mark.parametrize("y", [["a", "b", "a"], np.array(["a", 1, 2], dtype=object)])
def test_words_are_no_class_numbers(y):
    predictive = CategoricalPredictive.from_logits(torch.zeros(2, 3, 2))
    with pytest.raises(InputTypeError, match="number the classes first"):
        observed_labels(predictive, y)


def test_class_numbers_of_any_kind():
    predictive = CategoricalPredictive.from_logits(torch.zeros(2, 3, 2))
    frozen = np.array([0, 1, 1])
    frozen.flags.writeable = False
    for y in (frozen, np.array([0, 1, 1], dtype=object), np.array([0, 1, 1], np.uint8)):
        assert observed_labels(predictive, y).tolist() == [0, 1, 1]
