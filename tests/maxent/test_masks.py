"""Sets of masks: their law, their errors, and what each refuses."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import torch
from numpyro import handlers

from caveat import maxent
from caveat.errors import InputTypeError, ParameterError, UnsupportedModelError
from caveat.maxent.passes import first_run
from tests.maxent.cases import (
    CASES,
    LABELS,
    X,
    Y,
    density,
    direct,
    gaussian,
    logistic,
    tanh_net,
    weights,
)
from tests.statistics import assert_mean_is

pytestmark = pytest.mark.usefixtures("x64")

W = np.array([1.0, -0.5])


def rerun_of(model, *args):
    with handlers.seed(rng_seed=0):
        return first_run(model, args, {})


def of_inputs(x, y, rate=0.4):
    """Logistic regression with masks on the inputs, which have a data axis."""
    w = weights(x.shape[1])
    x = maxent.dropout("x", x, rate, units=1, data=0)
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def wide(n_units, n_rows=12):
    generator = np.random.default_rng(3)
    x = generator.normal(size=(n_rows, n_units))
    w = generator.normal(size=n_units) / np.sqrt(n_units)
    return x, (generator.random(n_rows) < 0.5).astype(int), w


# Enumeration


def test_all_masks_of_all_markers():
    rerun = rerun_of(tanh_net, X, Y)
    masks, probabilities = maxent.Enumerate().choose(rerun)
    both = np.hstack([masks["inputs"], masks["hidden"]])
    assert len({tuple(row) for row in both}) == 16
    assert float(probabilities.sum()) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_allclose(probabilities @ both, [0.8, 0.8, 0.5, 0.5])
    assert (both == 0).all(1).any()


def test_too_many_masks():
    x, y, w = wide(13)
    with pytest.raises(ParameterError, match=r"13 units have 2\^13. Use Quadrature"):
        density(maxent.posterior(logistic), x, y)(w)
    raised = maxent.posterior(logistic, masks=maxent.Enumerate(limit=2**13))
    assert np.isfinite(density(raised, x, y)(w))


# Balanced masks


def test_balanced_masks_are_exact_for_a_gaussian():
    x, _, w = wide(11)
    y = np.linspace(-1, 1, len(x))
    found, wanted = (
        density(maxent.posterior(linear, masks=masks), x, y)(w)
        for masks in (maxent.Balanced(), maxent.ClosedForm())
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def linear(x, y):
    w = maxent.dropout("w", weights(x.shape[1]), 0.5)
    numpyro.sample("y", dist.Normal(x @ w, 0.5), obs=y)


@pytest.mark.slow
def test_balanced_masks_beat_as_many_random_ones():
    x, y, w = wide(11)
    exact = density(maxent.posterior(logistic), x, y, 0.5)(w)
    balanced = density(maxent.posterior(logistic, masks=maxent.Balanced()), x, y, 0.5)
    random = [
        density(
            maxent.posterior(logistic, masks=maxent.Fixed(12, seed, per_datum=False)),
            x,
            y,
            0.5,
        )(w)
        for seed in range(3)
    ]
    spread = np.sqrt(np.mean((np.array(random) - exact) ** 2))
    assert abs(balanced(w) - exact) < spread / 10


def test_balanced_masks_need_a_half():
    model = maxent.posterior(logistic, masks=maxent.Balanced())
    with pytest.raises(ParameterError, match=r"rates of 1/2.*Got \[0.4\]"):
        density(model, X, LABELS)(W)
    half = density(model, X, LABELS, np.array([0.5, 0.0]))(W)
    exact = density(maxent.posterior(logistic), X, LABELS, np.array([0.5, 0.0]))(W)
    np.testing.assert_allclose(half, exact, rtol=1e-13)


# Fixed random masks


def test_fixed_masks_follow_their_law():
    rerun = rerun_of(of_inputs, X, LABELS, np.array([0.3, 0.8]))
    masks, share = maxent.Fixed(4000, seed=1).choose(rerun)
    assert masks["x"].shape == (4000, 4, 2)
    assert share.sum() == pytest.approx(1.0)
    draws = torch.from_numpy(masks["x"].astype(float))
    assert_mean_is(draws, torch.tensor([0.7, 0.2], dtype=torch.float64).expand(4, 2))
    assert_mean_is(draws[:, 0] * draws[:, 1], torch.tensor([0.49, 0.04]).double())
    assert_mean_is(draws[..., 0] * draws[..., 1], 0.14)


def test_fixed_masks_are_fixed_and_extend():
    rerun = rerun_of(of_inputs, X, LABELS)
    unseeded = maxent.Fixed(5, seed=None)
    few, again, many, other = (
        masks.choose(rerun).masks["x"]
        for masks in (unseeded, unseeded, maxent.Fixed(9, 7), maxent.Fixed(5, 7))
    )
    np.testing.assert_array_equal(few, again)
    np.testing.assert_array_equal(many[:5], other)
    assert (few != other).any()


def test_fixed_masks_approach_the_exact_density_at_the_rate_of_monte_carlo():
    exact = density(maxent.posterior(of_inputs), X, LABELS)(W)
    found = [
        density(maxent.posterior(of_inputs, masks=maxent.Fixed(16, s)), X, LABELS)(W)
        for s in range(8)
    ]
    assert_mean_is(torch.tensor(np.array(found)), float(exact))
    many = maxent.posterior(of_inputs, masks=maxent.Fixed(10_000))
    assert abs(density(many, X, LABELS)(W) - exact) < 5 * np.std(found) / np.sqrt(625)


def test_masks_of_every_datum_need_a_data_axis():
    model = maxent.posterior(logistic, masks=maxent.Fixed(4))
    with pytest.raises(ParameterError, match=r"the marker 'w' of shape \(2,\)"):
        density(model, X, LABELS)(W)


def test_masks_of_every_datum_cannot_follow_a_subsample():
    def model(x, y):
        w = weights(2)
        with numpyro.plate("data", 4, subsample_size=2) as rows:
            x = maxent.dropout("x", x[rows], 0.4, units=1, data=0)
            numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y[rows])

    def traced(masks):
        seeded = handlers.seed(maxent.posterior(model, masks=masks), 0)
        jax.make_jaxpr(seeded)(jnp.array(X), jnp.array(LABELS))

    with pytest.raises(UnsupportedModelError, match="subsamples"):
        traced(maxent.Fixed(4))
    traced(maxent.Fixed(4, per_datum=False))
    traced(maxent.Fresh(4))


# Fresh masks


@pytest.mark.parametrize(
    "name", ["logistic", pytest.param("tanh", marks=pytest.mark.slow)]
)
def test_fresh_masks_give_an_unbiased_density_and_gradient(name):
    case = CASES[name]
    w = jnp.array([1.0, -0.5, 0.7][: case.n_parameters])
    model = maxent.posterior(case.model, masks=maxent.Fresh(2))

    def one(key):
        seeded = handlers.seed(model, key)
        return jax.value_and_grad(density(seeded, *case.args))(w)

    keys = jax.random.split(jax.random.PRNGKey(0), 4000)
    values, gradients = jax.jit(jax.vmap(one))(keys)
    wanted = jax.value_and_grad(direct(case))(w)
    assert_mean_is(torch.tensor(np.array(values)), float(wanted[0]))
    assert_mean_is(torch.tensor(np.array(gradients)), torch.tensor(np.array(wanted[1])))


def test_fresh_masks_need_a_key():
    model = maxent.posterior(logistic, masks=maxent.Fresh())
    with pytest.raises(UnsupportedModelError, match="need a random key"):
        density(model, X, LABELS)(W)


# Rates that are traced, and bad settings


@pytest.mark.parametrize(
    "masks", [maxent.Balanced(), maxent.Fixed(3), maxent.Fresh(3)], ids=str
)
def test_drawn_masks_need_known_rates(masks):
    def log_density(rate):
        model = handlers.seed(maxent.posterior(gaussian, masks=masks), 0)
        return density(model, X, Y, rate)(W)

    with pytest.raises(UnsupportedModelError, match="no gradient passes"):
        jax.grad(log_density)(0.5)


def test_bad_settings():
    with pytest.raises(ParameterError, match="limit must be at least 1"):
        maxent.Enumerate(limit=0)
    with pytest.raises(InputTypeError, match="count must be a whole number"):
        maxent.Fixed(2.5)
    with pytest.raises(ParameterError, match="count must be at least 1"):
        maxent.Fresh(0)
    with pytest.raises(InputTypeError, match="seed must be an integer"):
        maxent.Fixed(2, seed="a")
