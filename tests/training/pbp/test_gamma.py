"""Gammas matched to a factor: against integrals, and where nothing can be matched."""

import numpy as np
import pytest
from scipy import integrate, stats

from caveat.training.pbp.gamma import Gamma, Normalisers, matched, normalisers


def one(shape, rate):
    return Gamma(np.array([shape]), np.array([rate]))


@pytest.mark.parametrize("error", [0.0, 0.4, 3.0])
def test_moments_are_those_of_the_exact_posterior_if_z_is_exact(error):
    """For known means the integrals are Student-t's, so E175 alone is tested."""
    a, b = 6.0, 5.0

    def power(k):
        def density(p):
            return p**k * stats.gamma.pdf(p, a, scale=1 / b)

        return integrate.quad(
            lambda p: density(p) * stats.norm.pdf(error, scale=p**-0.5), 0, np.inf
        )[0]

    moments = power(0), power(1), power(2)
    mean, square = moments[1] / moments[0], moments[2] / moments[0]
    # Z of a gamma with one more is the k-th moment over that of the gamma
    z = [moments[0], moments[1] / (a / b), moments[2] / (a * (a + 1) / b**2)]
    found = matched(one(a, b), Normalisers(*np.log(z)[:, None], np.ones(1)))
    assert found.shape[0] / found.rate[0] == pytest.approx(mean, rel=1e-6)
    spread = square - mean**2
    assert found.shape[0] / found.rate[0] ** 2 == pytest.approx(spread, rel=1e-6)
    assert found.shape[0] == pytest.approx(a + 0.5, rel=1e-6)  # conjugate
    assert found.rate[0] == pytest.approx(b + error**2 / 2, rel=1e-6)


def test_normalisers_are_gaussians_of_the_matched_variances():
    z = normalisers(np.array([1.5]), np.array([0.2]), one(6.0, 5.0))
    for log_z, over in zip(z[:3], (5.0, 6.0, 7.0), strict=True):
        total = 0.2 + 5.0 / over
        exact = stats.norm.logpdf(1.5, scale=np.sqrt(total)) + 0.5 * np.log(2 * np.pi)
        assert log_z[0] == pytest.approx(exact)
    assert z.total[0] == pytest.approx(1.2)


def test_a_long_stream_ends_near_the_conjugate_posterior():
    """Gaussians stand for Student-t's, which costs little of the early rows."""
    generator, gamma = np.random.default_rng(0), one(6.0, 0.06)
    values = generator.normal(scale=0.1, size=3_000)
    for value in values:
        gamma = matched(gamma, normalisers(np.array([value]), np.zeros(1), gamma))
    shape, rate = 6.0 + len(values) / 2, 0.06 + np.square(values).sum() / 2
    assert gamma.shape[0] == pytest.approx(shape, rel=0.02)
    assert gamma.mean_variance[0] == pytest.approx(rate / (shape - 1.0), rel=0.01)


def test_what_is_no_gamma_changes_nothing_and_only_its_own_network():
    both = Gamma(np.array([6.0, 6.0]), np.array([6.0, 6.0]))
    with np.errstate(all="ignore"):
        z = normalisers(np.array([1e200, 0.5]), np.array([0.1, 0.1]), both)
        found = matched(both, z)
    assert found.shape[0] == 6.0 and found.rate[0] == 6.0
    assert found.shape[1] != 6.0 and np.isfinite(found.rate[1])
