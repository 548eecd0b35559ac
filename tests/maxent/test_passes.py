"""A first run finds latent sites and markers; later runs take their values from it."""

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpy.testing import assert_allclose
from numpyro import handlers

from caveat import maxent
from caveat.errors import NoStochasticSiteError, ParameterError, UnsupportedModelError
from caveat.maxent.passes import Observation, first_run

X = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
Y = np.array([1.0, 0.0, 2.0])


def model(names=("w",), observed=True):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
    for name in names:
        w = maxent.dropout(name, w, 0.3)
    numpyro.sample("y", dist.Normal(X @ w, 2.0), obs=Y if observed else None)
    return w


def begun(run=model, **options):
    with handlers.seed(rng_seed=0):
        return first_run(run, (), options)


def test_a_first_run_shows_the_latent_sites_and_hides_the_observed_ones():
    with handlers.seed(rng_seed=0), handlers.trace() as trace:
        found = first_run(model, (), {})
    assert set(trace) == set(found.values) == {"w"}
    assert [marker.name for marker in found.markers] == ["w"]
    assert_allclose(found.result, found.values["w"])
    assert not found.subsampled


@pytest.mark.parametrize("mask", [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
def test_later_runs_are_masked_and_draw_nothing_new(mask):
    found = begun()
    observation = found({"w": jnp.array(mask)})["y"]
    expected = X @ (np.array(mask) * found.values["w"])
    assert_allclose(observation.fn.loc, expected, rtol=1e-6)
    assert_allclose(observation.log_prob(), observation.fn.log_prob(Y))


def test_scales_of_subsampling_weigh_the_log_probabilities():
    fn = dist.Normal(0.0, 1.0)
    half = Observation(fn, jnp.array([0.0, 1.0]), 0.5, ())
    plain = Observation(fn, jnp.array([0.0, 1.0]), None, ())
    assert_allclose(half.weighted(half.log_prob()), 0.5 * plain.log_prob().sum())
    assert_allclose(plain.weighted(jnp.array([1.0, 2.0])), 3.0)


def test_subsampling_is_noticed():
    def small():
        w = numpyro.sample("w", dist.Normal(jnp.zeros(2), 1.0).to_event(1))
        w = maxent.dropout("w", w, 0.3)
        with numpyro.plate("rows", 3, subsample_size=2) as rows:
            numpyro.sample("y", dist.Normal(w.sum(), 1.0), obs=Y[rows])

    assert begun(small).subsampled


def test_what_cannot_be_averaged_is_refused():
    with pytest.raises(ParameterError, match=r"a name of its own\. Got 'w' twice"):
        begun(names=("w", "w"))
    with pytest.raises(NoStochasticSiteError, match="marks nothing as dropped"):
        begun(names=())
    with pytest.raises(NoStochasticSiteError, match="observes nothing"):
        begun(observed=False)
    with pytest.raises(UnsupportedModelError, match="'w' was conditioned outside"):
        with handlers.condition(data={"w": jnp.zeros(2)}):
            begun()


def test_a_latent_site_that_hangs_on_a_mask_is_refused():
    def strange():
        w = numpyro.sample("w", dist.Normal(jnp.ones(2), 1e-3).to_event(1))
        kept = maxent.dropout("w", w, 0.3)
        if float(kept[0]) == 0.0:
            kept = kept + numpyro.sample("new", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(X @ kept, 2.0), obs=Y)

    with pytest.raises(UnsupportedModelError, match="'new' appears only when values"):
        begun(strange)({"w": jnp.array([0.0, 1.0])})
