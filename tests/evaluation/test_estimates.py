"""Estimates carry standard errors that are right."""

import math

import numpy as np
import pytest
import torch

from caveat.evaluation.estimates import Estimate, bootstrap_error
from tests.statistics import assert_mean_is


def test_mean_and_error_by_hand():
    found = Estimate.of_mean([1.0, 2.0, 3.0, 6.0])
    assert found.value == float(found) == 3.0
    assert found.error == pytest.approx(math.sqrt(14 / 3 / 4))


def test_one_row_has_no_error():
    assert Estimate.of_mean([1.0]).error == math.inf
    assert bootstrap_error(np.mean, np.ones(1)) == math.inf


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(0.123456, 0.0123), "0.123 ± 0.012"),
        (Estimate(52.34, 2.6), "52.3 ± 2.6"),
        (Estimate(5234.0, 260.0), "5234 ± 260"),
        (Estimate(1.0, 0.0), "1.000 ± 0.000"),
        (Estimate(1.0, math.inf), "1.000 ± inf"),
    ],
)
def test_two_digits_of_the_error_are_shown(estimate, text):
    assert str(estimate) == text


def test_bootstrap_of_a_mean_is_its_standard_error():
    generator = np.random.default_rng(1)
    ratios = []
    for _ in range(40):
        values = generator.exponential(size=200)
        exact = values.std() / math.sqrt(200)
        ratios.append(bootstrap_error(lambda v: float(v.mean()), values) / exact)
    ratios = torch.tensor(ratios)
    assert_mean_is(ratios, 1.0)
    assert float(ratios.std()) < 0.08  # 1 / sqrt(2 * 200) = 0.05


def test_bootstrap_repeats_itself():
    values = np.random.default_rng(0).normal(size=50)
    assert bootstrap_error(np.median, values) == bootstrap_error(np.median, values)
