"""Moments of rectified Gaussians against integrals, near 0 and far from it."""

import mpmath
import numpy as np
import pytest
import torch

from caveat.training.pbp.rectified import rectified, rectified_slopes

ALPHAS = [-40.0, -37.0, -30.0, -8.0, -1.0, -1e-9, 0.0, 0.3, 5.0, 30.0, 40.0, 1e8]


def integrals(alpha, std):
    """Mean and variance of max(0, a), a ~ N(alpha std, std²), to 60 digits."""
    with mpmath.workdps(60):
        a, s = mpmath.mpf(alpha), mpmath.mpf(std)
        cdf, density = mpmath.ncdf(a), mpmath.npdf(a)
        mean = s * (a * cdf + density)
        return mean, s**2 * ((a**2 + 1) * cdf + a * density) - mean**2


def test_the_formula_of_the_reference_is_that_of_the_integral():
    for alpha in (-2.0, 0.0, 1.5):
        low, high = mpmath.mpf(-alpha), mpmath.inf
        power = [
            mpmath.quad(
                lambda z, k=k, a=alpha: (z + a) ** k * mpmath.npdf(z), [low, high]
            )
            for k in (1, 2)
        ]
        mean, variance = integrals(alpha, 1.0)
        assert abs(mean - power[0]) < 1e-12
        assert abs(variance - (power[1] - power[0] ** 2)) < 1e-12


@pytest.mark.parametrize("std", [1e-20, 1.0, 1e5])
@pytest.mark.parametrize("alpha", ALPHAS)
def test_moments_are_those_of_the_integral(alpha, std):
    found = rectified(np.array([alpha * std]), np.array([std**2]))
    mean, variance = integrals(alpha, std)
    loss = 1e-15 * (1.0 + min(0.0, alpha) ** 4)  # relative; what cancels in the tail
    # At -40 both are 1e-350, no number of this size: 0
    assert float(abs(found.mean[0] - mean)) <= loss * float(mean) + 1e-306
    assert (
        float(abs(found.variance[0] - variance))
        <= 1e1 * loss * float(variance) + 1e-306
    )
    assert found.variance[0] >= 0


def test_far_from_zero_nothing_is_missing():
    at = np.array([-1e300, -1e10, 1e10, 1e300])
    found = rectified(at, np.ones(4))
    assert found.mean.tolist() == [0, 0, 1e10, 1e300]
    assert found.variance.tolist() == [0, 0, 1, 1]


def test_slopes_are_those_of_autograd():
    generator = np.random.default_rng(0)
    mean, variance = generator.normal(size=50) * 3, generator.gamma(1.0, size=50)
    m = torch.tensor(mean, requires_grad=True)
    v = torch.tensor(variance, requires_grad=True)
    alpha = m / v.sqrt()
    cdf, density = (
        torch.special.ndtr(alpha),
        (-alpha.square() / 2).exp() / np.sqrt(2 * np.pi),
    )
    first = m * cdf + v.sqrt() * density
    second = (m.square() + v) * cdf + m * v.sqrt() * density - first.square()
    d_mean, d_variance = generator.normal(size=(2, 50))
    total = first @ torch.from_numpy(d_mean) + second @ torch.from_numpy(d_variance)
    total.backward()
    found = rectified_slopes(rectified(mean, variance), d_mean, d_variance)
    np.testing.assert_allclose(found[0], m.grad, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found[1], v.grad, rtol=1e-8, atol=1e-12)
