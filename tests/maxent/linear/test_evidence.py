"""Normalising constants against quadrature and textbook densities."""

import numpy as np
import pytest
import scipy.stats
from numpy.testing import assert_allclose

from caveat.maxent.linear import (
    Design,
    Features,
    VariancePrior,
    fit_posterior,
    log_evidence,
    log_normalizer,
    make_noise,
)
from caveat.maxent.linear.intercept import UNDROPPED, WITHOUT
from caveat.maxent.linear.likelihood import expected_log_likelihood
from caveat.maxent.linear.posterior import JEFFREYS
from tests.maxent.linear.reference import Y, random_data, worked_example


def test_worked_example():
    posterior = fit_posterior(worked_example(), Y)
    assert_allclose(log_normalizer(posterior), -4.512345163291, atol=1e-12)
    assert_allclose(log_evidence(posterior), -3.696618667085, atol=1e-12)


@pytest.mark.parametrize("prior", [JEFFREYS, VariancePrior(1.3, 0.7)])
@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED])
def test_normalizer_is_the_integral_of_prior_times_expected_likelihood(
    prior, intercept
):
    x, y = np.array([[1.0], [0.4], [-0.7], [1.5]]), np.array([1.1, 0.6, -0.1, 0.9])
    design = Design(Features(x), make_noise(0.4, 1), 0.5, intercept)
    posterior = fit_posterior(design, y, prior=prior)
    logs, weights = np.linspace(-9, 9, 181), np.linspace(-40, 40, 401)
    levels = np.linspace(-40, 40, 401) if intercept.fitted else np.zeros(1)
    total = 0.0
    for v in np.exp(logs):
        scale = np.sqrt(v)
        w = weights * scale / 4 + posterior.mean
        b = levels * scale / 4 + (posterior.level if intercept.fitted else 0.0)
        # E of the log-likelihood is quadratic in (b, w): five coefficients
        gap = y[:, None, None] - b[None, :, None] - 0.6 * x[:, 0, None, None] * w
        squares = (gap**2).sum(0) + 0.24 * (x**2).sum() * w**2
        log_joint = -0.5 * squares / v - 2 * np.log(2 * np.pi * v)
        log_joint += 0.5 * np.log(0.5 / (2 * np.pi * v)) - 0.25 * w**2 / v
        law = (
            -np.log(v)
            if prior == JEFFREYS
            else scipy.stats.invgamma(1.3, scale=0.7).logpdf(v)
        )
        inner = np.trapezoid(np.exp(log_joint + law), w, axis=1)
        total += (np.trapezoid(inner, b) if len(b) > 1 else inner[0]) * v * 0.1
    assert_allclose(log_normalizer(posterior), np.log(total), rtol=1e-6)
    check = expected_log_likelihood(
        design, y, weights=w[:1], variance=v, level=float(b[0])
    )
    assert_allclose(check, -0.5 * squares[0, 0] / v - 2 * np.log(2 * np.pi * v))


@pytest.mark.parametrize("shape", [(9, 4), (5, 8)])
def test_evidence_is_the_marginal_density_of_the_data(shape):
    """With a proper prior of v the data are multivariate Student-t."""
    x, y = random_data(*shape)
    noise, prior = make_noise(0.3, shape[1]), VariancePrior(2.0, 1.5)
    posterior = fit_posterior(Design(Features(x), noise, 0.7), y, prior=prior)
    effective = 0.7 + 0.21 * (x**2).sum(0)
    covariance = np.eye(shape[0]) + 0.49 * (x / effective) @ x.T
    law = scipy.stats.multivariate_t(shape=1.5 / 2.0 * covariance, df=4.0)
    assert_allclose(log_evidence(posterior), law.logpdf(y))


def test_only_the_evidence_integrates_to_one():
    x, prior = np.array([[1.3, -0.4]]), VariancePrior(3.0, 2.0)
    design = Design(Features(x), make_noise(0.4, 2), 0.5)
    grid = np.sinh(np.linspace(-9, 9, 601))
    width = np.cosh(np.linspace(-9, 9, 601)) * (18 / 600)
    posteriors = [fit_posterior(design, np.array([y]), prior=prior) for y in grid]
    evidence, normalizer = (
        sum(np.exp([of(p) for p in posteriors]) * width)
        for of in (log_evidence, log_normalizer)
    )
    assert_allclose(evidence, 1.0, rtol=1e-6)
    assert normalizer < 0.95


def test_both_are_the_evidence_if_nothing_is_dropped():
    x, y = random_data(9, 4)
    posterior = fit_posterior(Design(Features(x), make_noise(0.0, 4), 0.7), y)
    assert_allclose(log_evidence(posterior), log_normalizer(posterior))


def test_improper_priors_have_no_evidence():
    x, y = random_data(9, 4)
    flat = fit_posterior(Design(Features(x), make_noise(0.0, 4), 0.0), y)
    assert log_evidence(flat) == log_normalizer(flat) == -np.inf
    dropped = fit_posterior(Design(Features(x), make_noise(0.2, 4), 0.0), y)
    assert log_normalizer(dropped) == -np.inf
    assert np.isfinite(log_evidence(dropped))


def test_a_response_of_zeros_has_infinite_density():
    posterior = fit_posterior(worked_example(), 0 * Y)
    assert log_evidence(posterior) == np.inf
