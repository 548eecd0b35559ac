"""AUROC is that of scikit-learn, and its error is the spread."""

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from caveat.errors import ParameterError
from caveat.evaluation import auroc, error_auroc, ood_auroc
from caveat.predictive import CategoricalPredictive, GaussianPredictive


@pytest.mark.parametrize("decimals", [1, 6])  # with many ties, and with none
def test_value_is_that_of_scikit_learn(decimals):
    generator = np.random.default_rng(0)
    low = generator.normal(size=40).round(decimals)
    high = (0.7 + generator.normal(size=25)).round(decimals)
    expected = roc_auc_score([0] * 40 + [1] * 25, np.concatenate([low, high]))
    assert auroc(low, high).value == pytest.approx(expected)


def test_error_restated_pair_by_pair():
    generator = np.random.default_rng(1)
    low, high = generator.integers(6, size=12) / 5, generator.integers(7, size=9) / 5
    wins = (high[:, None] > low) + 0.5 * (high[:, None] == low)
    variance = wins.mean(1).var(ddof=1) / 9 + wins.mean(0).var(ddof=1) / 12
    assert auroc(low, high).error == pytest.approx(np.sqrt(variance))


def test_error_is_the_spread():
    generator = np.random.default_rng(2)
    found = [
        auroc(generator.normal(size=80), 1 + generator.normal(size=60))
        for _ in range(200)
    ]
    values = np.array([f.value for f in found])
    assert values.std() == pytest.approx(np.mean([f.error for f in found]), rel=0.2)


def test_foreign_rows(generator):
    near = CategoricalPredictive.from_logits(
        5 * torch.randn(1, 50, 3, generator=generator).repeat(4, 1, 1)
    )
    far = CategoricalPredictive.from_logits(
        5 * torch.randn(4, 60, 3, generator=generator)
    )
    found = ood_auroc(near, far, score="mutual_information")
    assert found.value == 1.0  # the draws of near rows agree
    assert ood_auroc(far, near, score="mutual_information").value == 0.0
    assert ood_auroc(near, near, score="entropy").value == 0.5


def test_infinite_scores_rank_last(regression):
    worst = {300: 0.0, 3: np.inf}
    found = ood_auroc(
        regression, regression[:3], score=lambda p: np.full(len(p), worst[len(p)])
    )
    assert found.value == 1.0


def test_wrong_from_right(classifier, labels):
    wrong = (classifier.label != labels).numpy()
    least = 1 - classifier.probs.amax(1).numpy()
    expected = roc_auc_score(wrong, least)
    assert error_auroc(classifier, labels).value == pytest.approx(expected)


def test_both_kinds_are_needed(classifier):
    with pytest.raises(ParameterError, match="0 of 400 rows are wrong"):
        error_auroc(classifier, classifier.label)
    with pytest.raises(ParameterError, match="0 and 2"):
        auroc(np.zeros(0), np.zeros(2))


def test_nan_has_no_rank():
    with pytest.raises(ParameterError, match="1 of 2 rows"):
        auroc(np.zeros(3), np.array([1.0, np.nan]))


def test_kinds_may_be_regressions():
    near = GaussianPredictive.from_draws(torch.randn(9, 5), precision=1.0)
    far = GaussianPredictive.from_draws(9 * torch.randn(9, 5), precision=1.0)
    assert ood_auroc(near, far, score="std").value > 0.9
