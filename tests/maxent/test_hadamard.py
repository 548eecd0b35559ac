"""Balanced masks have the moments of independent ones."""

import numpy as np
import pytest

from caveat.maxent.hadamard import balanced_masks


@pytest.mark.parametrize("n_units", range(1, 64))
def test_first_two_moments_are_exact(n_units):
    masks = balanced_masks(n_units)
    runs = len(masks)
    assert n_units < runs <= max(2 * n_units, 4)
    np.testing.assert_array_equal(masks.sum(0) * 2, runs)
    products = masks.T @ masks * 4
    np.testing.assert_array_equal(
        products, runs * (np.ones((n_units, n_units)) + np.eye(n_units))
    )


def test_sizes():
    runs = {units: len(balanced_masks(units)) for units in (1, 3, 5, 11, 16, 19, 43)}
    assert runs == {1: 2, 3: 4, 5: 8, 11: 12, 16: 20, 19: 20, 43: 44}
