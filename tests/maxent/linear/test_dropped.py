"""The mixture over masks: all of them for few features, draws for many."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from numpy.testing import assert_allclose

from caveat.maxent.linear import Design, Features, fit_posterior, make_noise
from caveat.maxent.linear import dropped as module
from caveat.maxent.linear.dropped import all_masks, dropped_components
from caveat.maxent.linear.intercept import DROP_TO_MEAN, UNDROPPED, WITHOUT
from tests.maxent.linear.reference import NEW, Y, random_data, worked_example

RNG = np.random.default_rng(0)


def components(posterior, matrix, n_draws=7, seed=0):
    rng = np.random.default_rng(seed)
    return dropped_components(posterior, matrix, n_draws=n_draws, rng=rng)


def test_worked_example():
    posterior = fit_posterior(worked_example(), Y)
    found = components(posterior, NEW)
    assert found.n_draws == 0 and found.locations.shape == (4, 1)
    chances = np.exp(found.log_weights)
    assert_allclose(chances.sum(), 1.0)
    scales = posterior.noise_scale * np.sqrt(1 + found.leverages)
    law = scipy.stats.t(posterior.df, found.locations, scales)
    assert_allclose((chances * law.pdf(0.5)).sum(), 0.404638444012, atol=1e-12)
    assert_allclose((chances * law.sf(0.0)).sum(), 0.538977810791, atol=1e-12)
    mean = (chances * found.locations).sum()
    assert_allclose(mean, 0.080780492038, atol=1e-12)
    variance = (chances * (law.var() + (found.locations - mean) ** 2)).sum()
    assert_allclose(variance, 1.160347585348, atol=1e-11)


@pytest.mark.parametrize("intercept", [WITHOUT, UNDROPPED, DROP_TO_MEAN])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("groups", [None, [0, 1, 1, 2, 0]])
def test_each_component_is_the_prediction_under_its_mask(intercept, sparse, groups):
    x, y = random_data(8, 5, sparse=sparse)
    rates = np.array([0.3, 0.6, 0.6, 0.0, 0.3])
    noise = make_noise(rates, 5, groups=groups)
    posterior = fit_posterior(Design(Features(x), noise, 0.5, intercept), y)
    found = components(posterior, x[:3])
    n_units = 4 if groups is None else 2
    factors = np.ones((1 << n_units, 5))
    _, unit_of = np.unique(np.delete(noise.units[1], 3), return_inverse=True)
    factors[:, [0, 1, 2, 4]] = all_masks(n_units)[:, unit_of]
    unit_rates = np.array([0.3, 0.6, 0.6, 0.3] if groups is None else [0.3, 0.6])
    masks = all_masks(n_units)
    chances = np.where(masks, 1 - unit_rates, unit_rates).prod(1)
    predicted = [posterior.predict(x[:3], factor) for factor in factors]
    weights = np.exp(found.log_weights)
    for moment in (lambda q: q[0], lambda q: q[0] ** 2, lambda q: q[0] * q[1]):
        expected = sum(c * moment(q) for c, q in zip(chances, predicted, strict=True))
        ours = (weights * moment((found.locations, found.leverages))).sum(0)
        assert_allclose(ours, expected, rtol=1e-9)


def test_rows_with_few_non_zeros_are_enumerated_whatever_p():
    x = sp.random_array((20, 30_000), density=3e-4, rng=RNG, format="csr")
    y = RNG.normal(size=20)
    design = Design(Features(x), make_noise(0.5, 30_000), 1.0)
    posterior = fit_posterior(design, y)
    few = x[np.diff(x.indptr) <= 8][:3]
    found = components(posterior, few)
    assert found.n_draws == 0
    assert_allclose(np.exp(found.log_weights).sum(0), 1.0)
    location, _ = posterior.predict(few, design.noise.mean)
    average = (np.exp(found.log_weights) * found.locations).sum(0)
    assert_allclose(average, location, atol=1e-12)


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian"])
def test_drawn_masks_agree_with_the_exact_moments(monkeypatch, kind):
    monkeypatch.setattr(module, "MOST_UNITS", 1)
    x, y = random_data(8, 5)
    noise = make_noise(0.4, 5, kind=kind)
    posterior = fit_posterior(Design(Features(x), noise, 0.5, UNDROPPED), y)
    found = components(posterior, x[:3], n_draws=4000)
    assert found.n_draws == 4000
    exact, _ = posterior.predict(x[:3], noise.mean)
    spread = np.sqrt((noise.variance * (x[:3] * posterior.mean) ** 2).sum(1))
    error = spread / np.sqrt(4000)
    assert (np.abs(found.locations.mean(0) - exact) < 5 * error).all()
    assert_allclose(found.locations.std(0), spread, rtol=0.1)


def test_the_seed_decides_the_masks(monkeypatch):
    monkeypatch.setattr(module, "MOST_UNITS", 0)
    posterior = fit_posterior(worked_example(), Y)
    first, same, other = (components(posterior, NEW, seed=s) for s in (1, 1, 2))
    assert np.array_equal(first.locations, same.locations)
    assert not np.array_equal(first.locations, other.locations)


def test_no_rows():
    posterior = fit_posterior(worked_example(), Y)
    assert components(posterior, NEW[:0]).locations.shape[1] == 0
