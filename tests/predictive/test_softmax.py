"""The mean-field softmax: its limits, symmetries, and how far it is from sampling."""

import pytest
import torch

from caveat.errors import CaveatWarning
from caveat.predictive import CategoricalPredictive
from caveat.predictive.softmax import look_like_probs, mean_field_softmax
from tests.sampling.closed_form.nets import assert_same, numbers


def test_certain_logits_give_their_softmax():
    """E94."""
    mean = numbers(4, 5)
    assert_same(
        mean_field_softmax(mean, torch.zeros(4, 5, 5).double()), mean.softmax(1)
    )


def test_two_classes_are_the_probit_formula():
    mean, variance = numbers(6, 2), numbers(6, 2, seed=1).square()
    gap = mean[:, 0] - mean[:, 1]
    kappa = (1 + torch.pi / 8 * variance.sum(1)).rsqrt()
    assert_same(mean_field_softmax(mean, variance)[:, 0], torch.sigmoid(kappa * gap))


def test_a_common_shift_changes_nothing():
    """Nor does noise that all logits share."""
    mean, factor = numbers(3, 4), numbers(3, 4, 4, seed=1)
    joint = factor @ factor.mT
    found = mean_field_softmax(mean, joint)
    assert_same(found.sum(1), torch.ones(3).double())
    assert_same(mean_field_softmax(mean + 7.0, joint + 3.0), found)


def test_closer_to_the_integral_than_the_softmax_of_the_mean():
    """Gaussian logits with standard deviations around 0.8."""
    mean, factor = 1.5 * numbers(100, 4), 0.4 * numbers(100, 4, 4, seed=1)
    noise = numbers(5_000, 100, 4, seed=2)
    draws = mean + torch.einsum("bij,tbj->tbi", factor, noise)
    exact = draws.softmax(-1).mean(0)
    found = mean_field_softmax(mean, factor @ factor.mT)
    error = (found - exact).abs().mean()
    assert error < 0.02
    assert error < 0.6 * (mean.softmax(1) - exact).abs().mean()


def test_probabilities_are_told_from_logits():
    logits = torch.randn(9, 5, 3, generator=torch.Generator().manual_seed(0))
    for values in (logits, logits.log_softmax(-1), logits.abs(), logits.sigmoid()):
        assert not look_like_probs(values)
        CategoricalPredictive.from_logits(values)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
        probs = logits.softmax(-1).to(dtype)
        assert look_like_probs(probs)
        with pytest.warns(CaveatWarning, match="Pass their logarithms"):
            CategoricalPredictive.from_logits(probs)
    most = logits.softmax(-1)
    most[4, 2, 1] += 0.1  # one row of one draw will do
    assert not look_like_probs(most)
