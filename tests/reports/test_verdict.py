"""Every branch of the verdict, on predictions whose calibration is known."""

import numpy as np
import pytest
import torch

from caveat.evaluation import coverage
from caveat.predictive import GaussianPredictive
from caveat.reports.making import plain_text
from caveat.reports.markup import number
from caveat.reports.subject import subject_of
from caveat.reports.verdict import verdict_of
from tests.reports.cases import (
    normal_quantiles,
    regression,
    shares,
    standard,
    with_confidence,
)


def judged(predictive, y, **about):
    subject = subject_of(
        predictive, y, classes=None, target="", unit=about.get("unit", "")
    )
    found = verdict_of(subject)
    return [(one.state, plain_text(one.html)) for one in found]


# Intervals


@pytest.mark.parametrize(
    ("n_rows", "factor", "state", "words"),
    [
        (400, 1.0, "holds", "fits what happened: 90.0 % of 400"),
        (400, 1.6, "fails", "The model is overconfident"),
        (400, 0.6, "caution", "The model is underconfident"),
        (20, 1.0, "unknown", "so few rows cannot show"),
        (20, 9.0, "fails", "The model is overconfident"),  # few rows can show this
        (200_000, 1.03, "caution", "slightly overconfident"),
        (200_000, 0.97, "caution", "slightly underconfident"),
    ],
)
def test_intervals(n_rows, factor, state, words):
    y = factor * normal_quantiles(n_rows)
    (found, text), *_ = judged(standard(n_rows), y)
    assert found == state and words in text
    share = coverage(standard(n_rows), y, level=0.9).value
    assert f"{100 * share:.1f} %" in text


def test_right_at_one_level_only_is_said():
    y = torch.where(torch.arange(400) < 360, 0.01 * normal_quantiles(400), 3.0)
    (state, text), *_ = judged(standard(400), y)
    assert state == "caution"
    assert "but those of 5 % hold 90.0 %, so other levels are not to be" in text


def test_calibrated_predictions_seldom_look_wrong():
    """A false alarm has at most 5 %; of 60 sets, 11 or more have less than 2e-4."""
    states = []
    for seed in range(60):
        predictive, y, _ = regression(n_rows=300, n_draws=5, seed=seed)
        states.append(judged(predictive, y)[0][0])
    assert states.count("holds") >= 60 - 10


# Probabilities


@pytest.mark.parametrize(
    ("n_rows", "right", "state", "words"),
    [
        (500, 0.8, "holds", "probabilities fit what happened"),
        (500, 0.7, "fails", "The model is overconfident"),
        (500, 0.9, "caution", "The model is underconfident"),
        (10, 0.8, "unknown", "so few rows cannot show"),
        (10, 0.0, "fails", "The model is overconfident"),
        (100_000, 0.79, "caution", "slightly overconfident"),
    ],
)
def test_probabilities(n_rows, right, state, words):
    predictive, y = with_confidence(np.full(n_rows, 0.8), shares(n_rows, right))
    (found, text), *_ = judged(predictive, y)
    assert found == state and words in text
    assert "confidence of 80.0 % on average" in text


def test_right_on_average_only_is_said():
    probs = np.repeat([0.95, 0.6], 1000)
    right = np.concatenate([shares(1000, 0.85), shares(1000, 0.7)])
    (state, text), *_ = judged(*with_confidence(probs, right))
    assert state == "caution" and "10.0 % apart on average (ECE" in text


def test_sure_answers_that_are_right_hold_and_wrong_ones_do_not():
    probs = np.full(50, 1.0 - 1e-12)
    right = np.ones(50, dtype=bool)
    assert judged(*with_confidence(probs, right))[0][0] == "holds"
    right[7] = False
    assert judged(*with_confidence(probs, right))[0][0] == "fails"


# Errors beside none of a model


def test_errors_stand_beside_those_of_one_answer_for_all():
    predictive, y, _ = regression()
    _, (state, text), _ = judged(predictive, y, unit="kg")
    error = np.abs(predictive.mean.reshape(-1).numpy() - y).mean()
    plain = np.abs(y - y.mean()).mean()
    assert state == "holds"
    assert f"off by {number(error)} kg" in text
    assert f"off by {number(plain)} kg" in text


def test_no_better_and_worse_than_none():
    y = normal_quantiles(400)
    assert "do not show that the model is better" in judged(standard(400), y)[1][1]
    wrong = GaussianPredictive.point(-y, precision=1.0)
    state, text = judged(wrong, y)[1]
    assert state == "fails" and "worse than none" in text


def test_accuracy_stands_beside_the_most_frequent_class():
    right = shares(400, 0.9)
    predictive, y = with_confidence(np.full(400, 0.9), right)
    state, text = judged(predictive, y)[1]
    assert state == "caution" and "always answering “0” would be right" in text


def test_rows_of_one_class_say_little():
    predictive, y = with_confidence(np.full(40, 0.9), np.ones(40, dtype=bool))
    state, text = judged(predictive, y)[1]
    assert state == "unknown" and "all rows are of one class, “0”" in text


# Deferral


def spread_and_error(std, error):
    """Predictions of 0 with these spreads, off by these errors."""
    std = torch.as_tensor(std, dtype=torch.float64)
    mean = torch.zeros_like(std)[:, None]
    predictive = GaussianPredictive.point(mean, precision=std.pow(-2)[:, None])
    return judged(predictive, np.asarray(error, dtype=float))[2]


def test_doubt_that_goes_with_errors_helps():
    size = np.linspace(0.1, 2.0, 400)
    state, text = spread_and_error(size, size)
    assert state == "holds" and "(40 rows) to a person lowers the mean error" in text
    kept = size[:360].mean()
    assert f"from {number(size.mean())} to {number(kept)}" in text


def test_doubt_that_goes_against_errors_is_called_out():
    size = np.linspace(0.1, 2.0, 400)
    state, text = spread_and_error(size, size[::-1])
    assert state == "fails" and "do not choose rows by it" in text


def test_doubt_that_has_nothing_to_do_with_errors():
    state, text = spread_and_error(
        np.linspace(0.1, 2.0, 400), normal_quantiles(400).numpy()
    )
    assert state == "caution" and "no more than chance may do" in text


def test_one_spread_for_all_gives_no_order():
    state, text = judged(standard(100), normal_quantiles(100))[2]
    assert state == "fails" and "equally sure of all rows" in text


def test_few_rows_and_no_errors_stay_open():
    state, text = spread_and_error(np.linspace(1, 2, 20), np.linspace(1, 2, 20))
    assert state == "unknown" and "that is 2 rows here" in text
    state, text = spread_and_error(np.linspace(1, 2, 90), np.zeros(90))
    assert state == "unknown" and "no error among 90 rows" in text
