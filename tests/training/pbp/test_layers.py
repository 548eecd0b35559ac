"""Linear layers of Gaussian weights: exact moments, and the conjugate posterior."""

import numpy as np
import pytest

from caveat.training.pbp.layers import (
    LEAST_VARIANCE,
    Values,
    Weights,
    forward,
    updated,
    weight_slopes,
)


def random_weights(generator, shape=(2, 3, 4)):
    return Weights(generator.normal(size=shape), generator.gamma(1.0, size=shape))


def test_moments_are_those_of_products_of_independent_numbers():
    """E (wz)² = (m² + v)(z² + u) for each product, and products are independent."""
    generator = np.random.default_rng(0)
    weights = random_weights(generator)
    inputs = Values(
        generator.normal(size=(2, 5, 4)), generator.gamma(1.0, size=(2, 5, 4))
    )
    mean, variance = forward(weights, inputs)
    m, v = weights.mean[:, None], weights.variance[:, None]
    z, u = inputs.mean[:, :, None], inputs.variance[:, :, None]
    square = (m**2 + v) * (z**2 + u) - (m * z) ** 2
    np.testing.assert_allclose(mean, (m * z).sum(-1) / 2.0)
    np.testing.assert_allclose(variance, square.sum(-1) / 4.0)
    known = Values(inputs.mean)
    zero = Values(inputs.mean, np.zeros_like(inputs.mean))
    np.testing.assert_allclose(forward(weights, known), forward(weights, zero))


@pytest.mark.parametrize("x", [0.0, -1.7, 300.0])
def test_one_weight_with_gaussian_noise_has_the_conjugate_posterior(x):
    noise, y, m, v = 0.3, 1.1, -0.4, 2.0
    weights = Weights(np.full((1, 1, 1), m), np.full((1, 1, 1), v))
    inputs = Values(np.full((1, 1, 1), x))
    mean, variance = forward(weights, inputs)
    total = variance + noise
    slopes = (y - mean) / total, 0.5 * ((y - mean) ** 2 / total - 1.0) / total
    found = updated(weights, *weight_slopes(weights, inputs, *slopes))
    precision = 1.0 / v + x**2 / noise
    assert found.variance.item() == pytest.approx(1.0 / precision, rel=1e-8)
    expected = (m / v + x * y / noise) / precision
    assert found.mean.item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("bad", [1e200, np.nan, np.inf, -1e200])
def test_weights_whose_variance_would_be_no_number_keep_what_they_had(bad):
    before = random_weights(np.random.default_rng(1), (1, 2, 2))
    d_mean, d_variance = np.full((2, 1, 2, 2), 0.1)
    d_mean[0, 0, 1], d_variance[0, 1, 0] = bad, -abs(bad)
    with np.errstate(all="ignore"):
        after = updated(before, d_mean, d_variance)
    kept = np.array([[False, True], [True, False]])
    for old, new in zip(vars(before).values(), vars(after).values(), strict=True):
        assert (old[0] == new[0])[kept].all() and (old[0] != new[0])[~kept].all()
    assert (after.variance > LEAST_VARIANCE).all()
