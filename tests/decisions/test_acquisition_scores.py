"""Scores of single rows, restated naively."""

import numpy as np
import pytest
import torch

from caveat.decisions import acquisition
from caveat.errors import InputTypeError
from caveat.predictive import CategoricalPredictive, GaussianPredictive

LOGITS = 2 * torch.randn(9, 6, 4, generator=torch.Generator().manual_seed(1))
PREDICTIVE = CategoricalPredictive.from_logits(LOGITS)
PROBS = LOGITS.double().softmax(-1).numpy()


def naive_entropy(probs):
    return -(probs * np.log(probs)).sum(-1)


def test_classification_scores_are_the_formulas():
    mean = PROBS.mean(0)
    total, expected = naive_entropy(mean), naive_entropy(PROBS).mean(0)
    close = {"atol": 1e-6, "rtol": 0}
    np.testing.assert_allclose(acquisition.entropy(PREDICTIVE), total, **close)
    np.testing.assert_allclose(acquisition.bald(PREDICTIVE), total - expected, **close)
    np.testing.assert_allclose(
        acquisition.least_confidence(PREDICTIVE), 1 - mean.max(-1), **close
    )
    np.testing.assert_allclose(
        acquisition.variation_ratio(PREDICTIVE), PREDICTIVE.variation_ratio, **close
    )


def test_variances_are_summed_over_outputs():
    draws = torch.randn(5, 3, 2, generator=torch.Generator().manual_seed(2))
    predictive = GaussianPredictive.from_draws(draws, precision=4.0)
    spread = draws.double().numpy().var(0).sum(1)
    found = acquisition.epistemic_variance(predictive)
    np.testing.assert_allclose(found, spread, rtol=1e-5)
    found = acquisition.predictive_variance(predictive)
    np.testing.assert_allclose(found, spread + 2 / 4.0, rtol=1e-5)
    assert found.dtype == np.float64


def test_variance_of_labels_is_refused():
    with pytest.raises(InputTypeError, match=r"variance is for regressions.*take bald"):
        acquisition.predictive_variance(PREDICTIVE)
