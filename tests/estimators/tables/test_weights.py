"""Weights: the best candidate, a mixture, and nothing for noise."""

import numpy as np
import pytest
from scipy import stats

from caveat.estimators.tables.weights import (
    logit_weights,
    mean_shares,
    student_log_density,
    tie_price,
)

ONES = np.ones(400)


def test_student_log_density_is_that_of_scipy():
    z = np.linspace(-4, 4, 9)
    for df in (2.0, 7.0):
        assert np.allclose(student_log_density(z, df), stats.t.logpdf(z, df))
    assert np.allclose(student_log_density(z, np.inf), stats.norm.logpdf(z))


def test_two_halves_are_found():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 400))
    y = 0.5 * a + 0.5 * b + 0.1 * rng.normal(size=400)
    candidates = np.column_stack([np.zeros(400), a, b])
    shares = mean_shares(candidates, y, [0.0, 1.0, 1.0], ONES)
    assert np.allclose(shares, [0, 0.5, 0.5], atol=0.05) and shares.sum() == 1.0


def test_noise_leaves_the_candidate_that_costs_nothing():
    rng = np.random.default_rng(1)
    candidates = np.column_stack([np.zeros(400), 0.5 * rng.normal(size=(400, 4))])
    shares = mean_shares(candidates, rng.normal(size=400), [0, 2, 2, 2, 2], ONES)
    assert shares[0] > 0.8


@pytest.mark.parametrize("size", [50.0, 1e4])
def test_a_few_rows_do_not_decide(size):
    rng = np.random.default_rng(2)
    good = rng.normal(size=400)
    y = good + 0.1 * rng.normal(size=400)
    y[:4] += size
    bad = np.zeros(400)
    bad[:4] = size  # right for the wrong rows only
    shares = mean_shares(np.column_stack([bad, good]), y, [0.0, 1.0], ONES)
    assert shares[1] > 0.95


def test_weights_of_rows_count():
    y = np.concatenate([np.ones(200), -np.ones(200)])
    y += 0.1 * np.random.default_rng(0).normal(size=400)
    both = np.column_stack([np.ones(400), -np.ones(400)])
    weight = np.concatenate([np.full(200, 1.9), np.full(200, 0.1)])
    assert mean_shares(both, y, [0.0, 0.0], weight)[0] > 0.9


def test_logits_are_made_less_sure_and_noise_is_left_out():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=600)
    labels = (rng.random(600) < 1 / (1 + np.exp(-truth))).astype(np.int64)
    sure = np.stack([-2 * truth, 2 * truth], 1)  # four times too sure
    noise = rng.normal(size=(600, 2))
    prior = np.zeros((600, 2))
    logits = np.stack([prior, sure, noise])
    found = logit_weights(logits, labels, [0.0, 1.0, 3.0], np.ones(600))
    assert 0.15 < found[1] < 0.4 and found[2] < 0.15


def test_a_sum_of_one_has_no_price():
    assert tie_price(1.0) == 0.0 and tie_price(2.0) == tie_price(0.0) == 2.0
