"""Linear regression with unknown noise: eq. 10 has the closed form of section 2.2."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.distributions import constraints
from scipy.special import gammaln

from caveat import maxent
from caveat.maxent.linear import (
    Design,
    Features,
    fit_posterior,
    log_normalizer,
    make_noise,
)
from tests.maxent.cases import X, Y

pytestmark = pytest.mark.usefixtures("x64")

RATE, PRIOR_PRECISION = 0.4, 0.5
POINTS = [((0.5, -0.2), 0.8), ((1.1, 0.3), 0.2), ((-0.4, 0.9), 3.0)]


def linear(x, y, rate=RATE):
    """Prior N(0, v/λ0) on weights and 1/v on the noise variance v."""
    v = numpyro.sample("v", dist.ImproperUniform(constraints.positive, (), ()))
    numpyro.factor("jeffreys", -jnp.log(v))
    prior = dist.Normal(0.0, jnp.sqrt(v / PRIOR_PRECISION))
    w = numpyro.sample("w", prior.expand([x.shape[1]]).to_event(1))
    w = maxent.dropout("w", w, rate)
    numpyro.sample("y", dist.Normal(x @ w, jnp.sqrt(v)), obs=y)


class ClosedFormPosterior:
    """Normal and inverse-gamma, after the corrected eq. 14."""

    def __init__(self, x, y, f, prior_precision):
        gram = x.T @ x
        self.n = len(y)
        self.precision = (
            prior_precision * np.eye(x.shape[1])
            + f * (1 - f) * np.diag(np.diag(gram))
            + (1 - f) ** 2 * gram
        )
        self.mean = (1 - f) * np.linalg.solve(self.precision, x.T @ y)
        self.s = y @ y - self.mean @ self.precision @ self.mean
        self.log_z = (
            gammaln(self.n / 2)
            - self.n / 2 * math.log(math.pi * self.s)
            + x.shape[1] / 2 * math.log(prior_precision)
            - np.linalg.slogdet(self.precision)[1] / 2
        )

    def log_density(self, w, v):
        gap, size = w - self.mean, len(w)
        a, b = self.n / 2, self.s / 2
        normal = -size / 2 * math.log(2 * math.pi * v)
        normal += np.linalg.slogdet(self.precision)[1] / 2
        normal -= gap @ self.precision @ gap / (2 * v)
        gamma = a * math.log(b) - gammaln(a) - (a + 1) * math.log(v) - b / v
        return normal + gamma


def gaps(model, exact):
    """Log density of the model less that of the closed form, at some points."""
    log_density = jax.jit(
        lambda values: numpyro.infer.util.log_density(model, (X, Y), {}, values)[0]
    )
    return [
        log_density({"w": jnp.array(w), "v": v}) - exact.log_density(np.array(w), v)
        for w, v in POINTS
    ]


@pytest.mark.parametrize("masks", [maxent.Enumerate(), maxent.ClosedForm()], ids=str)
def test_density_is_the_closed_form_times_z(masks):
    exact = ClosedFormPosterior(X, Y, RATE, PRIOR_PRECISION)
    assert exact.log_z == pytest.approx(-4.512345163291, abs=1e-12)
    np.testing.assert_allclose(exact.mean, [0.677269288047, 0.308594862033], atol=1e-12)
    model = maxent.posterior(linear, masks=masks)
    np.testing.assert_allclose(gaps(model, exact), exact.log_z, atol=1e-12)


def test_expected_log_likelihood_of_the_reference():
    def likelihood(x, y):
        w = maxent.dropout("w", jnp.array([0.5, -0.2]), RATE)
        numpyro.sample("y", dist.Normal(x @ w, math.sqrt(0.8)), obs=y)

    model = maxent.posterior(likelihood, masks=maxent.ClosedForm())
    found = numpyro.infer.util.log_density(model, (X, Y), {}, {})[0]
    assert float(found) == pytest.approx(-4.507854530190, abs=1e-12)


def test_the_linear_package_agrees():
    design = Design(Features(X), make_noise(RATE, 2), PRIOR_PRECISION)
    fitted = fit_posterior(design, Y)
    model = maxent.posterior(linear, masks=maxent.ClosedForm())
    exact = ClosedFormPosterior(X, Y, RATE, PRIOR_PRECISION)
    np.testing.assert_allclose(fitted.mean, exact.mean, rtol=1e-12)
    np.testing.assert_allclose(gaps(model, exact), log_normalizer(fitted), atol=1e-12)


def test_balanced_masks_are_the_closed_form_at_a_half():
    def half(x, y):
        linear(x, y, rate=0.5)

    exact = ClosedFormPosterior(X, Y, 0.5, PRIOR_PRECISION)
    model = maxent.posterior(half, masks=maxent.Balanced())
    np.testing.assert_allclose(gaps(model, exact), exact.log_z, atol=1e-12)
