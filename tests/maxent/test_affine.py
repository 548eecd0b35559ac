"""Averages of affine values against sums over all masks."""

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from caveat.maxent.affine import Affine, MarkerPart
from caveat.maxent.markers import Marker

pytestmark = pytest.mark.usefixtures("x64")

RATES = {"a": np.array([0.3, 0.6]), "b": np.array([0.1, 0.5, 0.9])}
MARKERS = {name: Marker(name, r.shape, (0,), None, r) for name, r in RATES.items()}
RNG = np.random.default_rng(0)
CONSTANT = RNG.normal(size=(4, 3))
DENSE = RNG.normal(size=(2, 4, 3))  # two units of a, each with a slope everywhere
PLACED = RNG.normal(size=(4, 3))  # unit k of b touches column k alone


def value():
    """CONSTANT + DENSE a + PLACED b; made in a test, for its precision."""
    parts = {
        "a": MarkerPart(jnp.asarray(DENSE), None, 2),
        "b": MarkerPart(jnp.asarray(PLACED), 1, 3),
    }
    return Affine(jnp.asarray(CONSTANT), parts)


def over_masks():
    """(probability, value) of every mask of both markers."""
    rates = np.concatenate([RATES["a"], RATES["b"]])
    for mask in product((0.0, 1.0), repeat=5):
        kept = np.array(mask)
        chance = np.prod(np.where(kept == 1.0, 1.0 - rates, rates))
        yield chance, CONSTANT + np.tensordot(kept[:2], DENSE, 1) + PLACED * kept[2:]


def average(function):
    return sum(chance * function(v) for chance, v in over_masks())


def test_mean_variance_and_mean_of_the_exponential():
    mean = average(lambda v: v)
    assert_allclose(value().mean(MARKERS), mean)
    assert_allclose(value().variance(MARKERS), average(lambda v: (v - mean) ** 2))
    assert_allclose(value().log_mean_exp(MARKERS), np.log(average(np.exp)))


def test_a_slope_at_its_place_is_a_diagonal():
    found = value().parts["b"].dense()
    assert found.shape == (3, 4, 3)
    for unit, column in product(range(3), repeat=2):
        expected = PLACED[:, column] if unit == column else np.zeros(4)
        assert_allclose(found[unit, :, column], expected)


def test_units_that_are_never_or_always_dropped():
    sure = {"a": Marker("a", (2,), (0,), None, np.array([0.0, 1.0]))}
    found = Affine(jnp.asarray(CONSTANT), {"a": value().parts["a"]})
    assert_allclose(found.mean(sure), CONSTANT + DENSE[0])
    assert_allclose(found.variance(sure), 0.0)
    assert_allclose(found.log_mean_exp(sure), CONSTANT + DENSE[0])
