"""Eq. 13 against the enumeration of all masks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.maxent.linear import Design, Features, make_noise
from caveat.maxent.linear.intercept import DROP_TO_MEAN
from caveat.maxent.linear.likelihood import expected_log_likelihood
from tests.maxent.linear.reference import (
    X,
    Y,
    masks_and_chances,
    random_data,
    worked_example,
)
from tests.maxent.linear.reference import expected_log_likelihood as enumerated


def test_worked_example():
    weights = np.array([0.5, -0.2])
    found = expected_log_likelihood(worked_example(), Y, weights=weights, variance=0.8)
    assert_allclose(found, -4.507854530190, atol=1e-12)
    assert_allclose(enumerated(X, Y, weights, 0.8, [0.4, 0.4]), found, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_enumeration_with_a_rate_per_feature(sparse):
    x, y = random_data(7, 5, sparse=sparse)
    rates, weights = np.array([0.0, 0.1, 0.5, 0.8, 0.3]), np.linspace(-1, 2, 5)
    design = Design(Features(x), make_noise(rates, 5), 1.0)
    found = expected_log_likelihood(design, y, weights=weights, variance=1.7)
    dense = x.toarray() if sparse else x
    assert_allclose(found, enumerated(dense, y, weights, 1.7, rates))


def test_enumeration_of_groups_that_drop_to_the_mean():
    x, y = random_data(7, 4)
    noise = make_noise(0.3, 4, groups=[0, 1, 1, 0])
    design = Design(Features(x), noise, 1.0, DROP_TO_MEAN)
    weights = np.array([1.0, -0.5, 0.25, 2.0])
    found = expected_log_likelihood(design, y, weights=weights, variance=0.9, level=0.4)
    masks, chances = masks_and_chances(np.array([0.3, 0.3]))
    gaps = y - 0.4 - (masks[:, [0, 1, 1, 0]] * weights) @ (x - x.mean(0)).T
    logs = -0.5 * gaps**2 / 0.9 - 0.5 * np.log(2 * np.pi * 0.9)
    assert_allclose(found, chances @ logs.sum(1))
