"""NUTS, SVI and Langevin dynamics on the transformed models find the posterior."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import pytest
from numpyro import handlers
from numpyro.diagnostics import effective_sample_size
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal

from caveat import maxent
from tests.maxent.cases import (
    CASES,
    LABELS,
    X,
    density,
    direct,
    logistic,
    moments_on_grid,
)

pytestmark = pytest.mark.usefixtures("x64")


def run_nuts(model, args, n_samples):
    mcmc = MCMC(NUTS(model), num_warmup=400, num_samples=n_samples, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(1), *args)
    assert mcmc.get_extra_fields()["diverging"].sum() == 0
    return np.array(mcmc.get_samples()["w"])


def assert_moments(draws, mean, covariance, z=5.0):
    """Mean and covariance agree within the error of autocorrelated draws."""
    centred = draws - mean
    products = np.einsum("ti,tj->tij", centred, centred).reshape(len(draws), -1)
    for values, wanted in [(draws, mean), (products, np.ravel(covariance))]:
        size = effective_sample_size(values[None])
        error = values.std(0) / np.sqrt(size)
        assert (np.abs(values.mean(0) - wanted) / error).max() < z


def test_nuts_finds_the_reference_posterior():
    draws = run_nuts(maxent.posterior(logistic), (X, LABELS), 3000)
    size = effective_sample_size(draws[None])
    error = draws.std(0) / np.sqrt(size)
    gap = np.abs(draws.mean(0) - np.array([1.712491131, -0.324533215]))
    assert (gap / error).max() < 5
    spread = draws.std(0) / np.array([1.573378123, 1.303848505]) - 1
    assert (np.abs(spread) * np.sqrt(2 * size)).max() < 5 * 1.5


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_nuts_has_the_moments_of_the_sum_over_masks(name):
    case = CASES[name]
    points = 181 if case.n_parameters == 2 else 81
    _, mean, covariance = moments_on_grid(
        direct(case), case.n_parameters, reach=12.0, points=points
    )
    draws = run_nuts(maxent.posterior(case.model), case.args, 8000)
    assert_moments(draws, np.array(mean), np.array(covariance))


@pytest.mark.slow
def test_svi_with_fresh_masks_finds_the_gaussian_posterior():
    """With known noise the posterior is normal, so the guide can be exact."""
    case = CASES["gaussian"]
    hessian = np.array(jax.hessian(direct(case))(jnp.zeros(2)))
    mean = np.linalg.solve(-hessian, np.array(jax.grad(direct(case))(jnp.zeros(2))))
    model = maxent.posterior(case.model, masks=maxent.Fresh(8))
    guide = AutoMultivariateNormal(model)
    optimiser = numpyro.optim.Adam(lambda step: 0.05 / (1 + step / 200))
    svi = SVI(model, guide, optimiser, Trace_ELBO(num_particles=4))
    result = svi.run(jax.random.PRNGKey(0), 4000, *case.args, progress_bar=False)
    found = guide.get_posterior(result.params)
    sd = np.sqrt(np.diag(np.linalg.inv(-hessian)))
    assert (np.abs(np.array(found.mean) - mean) / sd).max() < 0.1
    ratio = np.array(found.covariance_matrix) @ -hessian
    np.testing.assert_allclose(ratio, np.eye(2), atol=0.15)


@pytest.mark.slow
def test_langevin_dynamics_with_fresh_masks_finds_the_posterior():
    """Steps small enough that their bias is below what is checked."""
    case = CASES["logistic"]
    _, mean, covariance = moments_on_grid(direct(case), 2, reach=16.0)
    model = maxent.posterior(logistic, masks=maxent.Fresh(1))
    step_size = 0.01

    def step(w, key):
        noise, masks = jax.random.split(key)
        gradient = jax.grad(density(handlers.seed(model, masks), X, LABELS))(w)
        kick = jnp.sqrt(step_size) * jax.random.normal(noise, w.shape)
        w = w + step_size / 2 * gradient + kick
        return w, w

    keys = jax.random.split(jax.random.PRNGKey(0), 400_000)
    _, draws = jax.lax.scan(step, jnp.array(mean), keys)
    draws = np.array(draws)[::50]
    size = effective_sample_size(draws[None])
    error = draws.std(0) / np.sqrt(size)
    assert (np.abs(draws.mean(0) - mean) / error).max() < 5
    np.testing.assert_allclose(draws.std(0), np.sqrt(np.diag(covariance)), rtol=0.08)
