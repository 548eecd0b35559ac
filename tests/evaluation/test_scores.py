"""Scores rank rows, one number each, or say why not."""

import numpy as np
import pytest
import torch

from caveat.errors import InputTypeError, ParameterError, ShapeError
from caveat.evaluation.scores import (
    CLASSIFICATION_SCORES,
    REGRESSION_SCORES,
    checked_scores,
    default_score,
    score_of,
)
from caveat.predictive import (
    CategoricalPredictive,
    GaussianPredictive,
    StudentPredictive,
)


@pytest.mark.parametrize("name", CLASSIFICATION_SCORES)
def test_classification_scores_have_one_number_per_row(classifier, name):
    found = score_of(classifier, name)
    assert found.shape == (400,) and found.dtype == np.float64


@pytest.mark.parametrize("name", REGRESSION_SCORES)
def test_regression_scores_have_one_number_per_row(regression, name):
    assert score_of(regression, name).shape == (300,)


def test_values_by_hand():
    probs = torch.tensor([[[0.5, 0.3, 0.2]], [[0.7, 0.1, 0.2]]])  # two draws, one row
    predictive = CategoricalPredictive.from_logits(probs.log())  # average .6 .2 .2
    expected = {
        "entropy": -0.6 * np.log(0.6) - 0.4 * np.log(0.2),
        "least_confidence": 0.4,
        "margin": 0.6,
    }
    for name, value in expected.items():
        assert score_of(predictive, name) == pytest.approx([value], rel=1e-6)


def test_student_has_a_standard_deviation():
    predictive = StudentPredictive.of(
        torch.zeros(2), torch.tensor([1.0, 2.0]), noise_scale=1.0, df=4.0
    )
    np.testing.assert_allclose(score_of(predictive, "std"), [2**0.5, 8**0.5], rtol=1e-6)
    assert default_score(predictive) == "std"


def test_least_confidence_keeps_its_digits():
    predictive = CategoricalPredictive.from_logits(
        torch.tensor([[[30.0, 0.0]]], dtype=torch.float64)
    )
    assert score_of(predictive, "least_confidence")[0] == pytest.approx(
        np.exp(-30), rel=1e-2
    )


def test_a_function_is_a_score(regression):
    found = score_of(regression, lambda p: p.std[:, 0] * 2)
    np.testing.assert_allclose(found, 2 * regression.std[:, 0])


def test_unknown_names_are_listed(classifier, regression):
    with pytest.raises(ParameterError, match=r"'entropy', 'expected_entropy'.*'std'"):
        score_of(classifier, "std")
    with pytest.raises(ParameterError, match=r"'std', 'epistemic_std'.*'entropy'"):
        score_of(regression, "entropy")


def test_several_outputs_need_a_function():
    predictive = GaussianPredictive.from_draws(torch.randn(3, 5, 2), precision=1.0)
    with pytest.raises(ShapeError, match=r"\(5,\). Got \(5, 2\).*amax"):
        score_of(predictive, "std")
    assert score_of(predictive, lambda p: p.std.amax(-1)).shape == (5,)


def test_nan_is_refused_and_infinity_is_not(regression):
    bad = torch.full((300,), torch.inf)
    assert np.isinf(score_of(regression, lambda p: bad)).all()
    bad[3] = torch.nan
    with pytest.raises(ParameterError, match="1 of 300 rows"):
        score_of(regression, lambda p: bad)


def test_wrong_lengths_and_kinds(regression):
    with pytest.raises(ShapeError, match=r"\(300,\). Got \(4,\)"):
        score_of(regression, lambda p: torch.zeros(4))
    with pytest.raises(InputTypeError, match="Predictive"):
        score_of(torch.zeros(3), "std")
    with pytest.raises(InputTypeError, match="real numbers"):
        checked_scores("scores", ["a"], 1)
