"""Posterior samples as predictives of Caveat, dropped or weight-averaged."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import scipy.stats
import torch

import caveat
from caveat import maxent
from caveat.errors import ParameterError, ShapeError, UnsupportedModelError
from tests.maxent.cases import X, Y, poisson, weights
from tests.maxent.test_linear_case import PRIOR_PRECISION, RATE, ClosedFormPosterior
from tests.statistics import assert_mean_is, assert_variance_is

pytestmark = pytest.mark.usefixtures("x64")

X_NEW = np.array([[0.7, -1.1]])
SAMPLES = {"w": np.array([[1.0, -0.5], [2.0, 0.3], [-0.4, 0.1]])}


def regression(x, y=None, noise=0.5):
    w = maxent.dropout("w", weights(2), RATE)
    numpyro.sample("y", dist.Normal(x @ w, noise), obs=y)


def classification(x, y=None):
    x = maxent.dropout("x", x, 0.4, units=1, data=0)
    numpyro.sample("y", dist.Bernoulli(logits=x @ weights(2)), obs=y)


def test_weight_averaged_scales_by_the_keep_probability():
    found = maxent.predictive(maxent.weight_averaged(regression), SAMPLES, X)
    assert isinstance(found, caveat.GaussianPredictive)
    wanted = 0.6 * SAMPLES["w"] @ X.T
    np.testing.assert_allclose(found.draws, wanted, rtol=1e-14)
    np.testing.assert_allclose(found.noise_variance, 0.25, rtol=1e-14)
    plain = maxent.predictive(regression, SAMPLES, X)
    np.testing.assert_allclose(plain.draws * 0.6, wanted, rtol=1e-14)


def exact_samples(n):
    """Independent draws of the closed-form posterior of the reference data."""
    exact = ClosedFormPosterior(X, Y, RATE, PRIOR_PRECISION)
    generator = np.random.default_rng(5)
    v = exact.s / 2 / generator.gamma(exact.n / 2, size=n)
    root = np.linalg.cholesky(np.linalg.inv(exact.precision))
    w = exact.mean + np.sqrt(v)[:, None] * generator.normal(size=(n, 2)) @ root.T
    return {"w": w, "v": v}


def with_noise(x, y=None):
    v = numpyro.sample("v", dist.InverseGamma(1.0, 1.0))
    w = maxent.dropout("w", weights(2), RATE)
    numpyro.sample("y", dist.Normal(x @ w, jnp.sqrt(v)), obs=y)


def test_predictives_of_the_reference_posterior():
    """Reference values of the linear model; v has no fourth moment, so bound it."""
    samples = exact_samples(200_000)
    averaged, dropped = (
        maxent.predictive(model, samples, X_NEW)
        for model in (maxent.weight_averaged(with_noise), maxent.dropped(with_noise))
    )
    assert_mean_is(averaged.draws, 0.080780492038)
    assert_mean_is(dropped.draws, 0.080780492038)
    # 1.160347585348 with the noise, whose part is E v = 0.749819965546
    epistemic = dropped.epistemic_variance.item()
    assert epistemic == pytest.approx(1.160347585348 - 0.749819965546, rel=0.05)


def test_densities_are_those_of_each_draw_with_its_own_noise():
    """Together they are the Student-t of the closed form, 4 degrees of freedom."""
    samples = exact_samples(200_000)
    averaged, dropped = (
        maxent.predictive(model, samples, X_NEW)
        for model in (maxent.weight_averaged(with_noise), maxent.dropped(with_noise))
    )
    exact = scipy.stats.t(4, 0.080780492038, np.sqrt(0.469967310050))
    for y in (0.5, 4.0):
        own = scipy.stats.norm.pdf(
            y, averaged.draws.numpy().ravel(), np.sqrt(samples["v"])
        )
        error = own.std() / np.sqrt(len(own))
        density = float(averaged.log_prob([y]).exp())
        assert density == pytest.approx(own.mean(), rel=1e-12)
        assert abs(density - exact.pdf(y)) < 5 * error
    # 0.404638444012: the mixture over masks at 0.5
    assert float(dropped.log_prob([0.5]).exp()) == pytest.approx(0.404638444, rel=0.01)
    assert float(averaged.quantile(0.975)) == pytest.approx(exact.ppf(0.975), rel=0.02)


def test_dropped_draws_have_the_law_of_the_masks():
    n = 20_000
    samples = {"w": np.tile([1.0, -0.5], (n, 1))}
    found = maxent.predictive(maxent.dropped(regression), samples, X)
    eta = X * np.array([1.0, -0.5])
    assert_mean_is(found.draws, torch.tensor(0.6 * eta.sum(1)))
    assert_variance_is(found.draws, torch.tensor(0.24 * (eta**2).sum(1)))


def test_draws_follow_the_seed():
    first, again, other = (
        maxent.predictive(maxent.dropped(regression), SAMPLES, X, seed=seed).draws
        for seed in (0, 0, 3)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_masks_are_shared_by_rows_unless_there_is_a_data_axis():
    rows = np.tile([[0.7, -1.1]], (2, 1))
    samples = {"w": np.tile([1.0, -0.5], (400, 1))}
    shared = maxent.predictive(maxent.dropped(regression), samples, rows)
    assert torch.equal(shared.draws[:, 0], shared.draws[:, 1])
    own = maxent.predictive(maxent.dropped(classification), samples, rows)
    assert not torch.equal(own.draws[:, 0], own.draws[:, 1])


def test_classes():
    found = maxent.predictive(maxent.weight_averaged(classification), SAMPLES, X)
    assert isinstance(found, caveat.CategoricalPredictive)
    probability = 1 / (1 + np.exp(-0.6 * SAMPLES["w"] @ X.T))
    np.testing.assert_allclose(found.probs[:, 1], probability.mean(0), rtol=1e-12)

    def several(x, y=None):
        w = maxent.dropout("w", weights(2), 0.4)
        logits = jnp.stack([x @ w, -x @ w, x[:, 0]], -1)
        with numpyro.plate("data", len(x)):
            numpyro.sample("y", dist.Categorical(logits=logits), obs=y)

    found = maxent.predictive(maxent.weight_averaged(several), SAMPLES, X)
    eta = 0.6 * SAMPLES["w"] @ X.T
    logits = np.stack([eta, -eta, np.broadcast_to(X[:, 0], eta.shape)], -1)
    np.testing.assert_allclose(found.probs, jax.nn.softmax(logits).mean(0), rtol=1e-12)


def test_outputs_in_events_and_plates():
    def model(x, y=None):
        w = maxent.dropout("w", weights(2), 0.4)
        with numpyro.plate("data", len(x)):
            loc = jnp.stack([x @ w, x @ w + 1], -1)
            numpyro.sample("y", dist.Normal(loc, 0.5).to_event(1), obs=y)

    found = maxent.predictive(maxent.weight_averaged(model), SAMPLES, X)
    assert found.mean.shape == (4, 2)
    np.testing.assert_allclose(found.mean[:, 1] - found.mean[:, 0], 1.0, rtol=1e-12)


def test_bad_arguments():
    with pytest.raises(UnsupportedModelError, match="'y' is Poisson"):
        maxent.predictive(maxent.dropped(poisson), SAMPLES, X)
    with pytest.raises(ShapeError, match="samples first"):
        maxent.predictive(regression, {"w": SAMPLES["w"], "v": np.ones(2)}, X)
    with pytest.raises(ShapeError, match="samples first"):
        maxent.predictive(regression, {}, X)
    with pytest.raises(ParameterError, match=r"one of \['v', 'y'\].*Got None"):
        maxent.predictive(with_noise, SAMPLES, X)
    with pytest.raises(ParameterError, match="Got 'z'"):
        maxent.predictive(regression, SAMPLES, X, site="z")
