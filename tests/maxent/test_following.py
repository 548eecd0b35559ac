"""Dependence on masks, read off the computation: right where it is claimed."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from caveat.maxent.affine import Affine, Opaque
from caveat.maxent.following import follow
from caveat.maxent.markers import Marker

pytestmark = pytest.mark.usefixtures("x64")

RATES = {"a": np.array([0.3, 0.6]), "b": np.array([0.1, 0.5, 0.9])}
MARKERS = {
    name: Marker(name, rate.shape, (0,), None, rate) for name, rate in RATES.items()
}
UNITS = {"a": 2, "b": 3}
X = np.random.default_rng(0).normal(size=(4, 2))
Z = np.random.default_rng(1).normal(size=(4, 3))
BOTH = np.random.default_rng(2).normal(size=(2, 3))


@jax.jit
def inner(a):
    return X @ a


AFFINE = {
    "product": lambda a, b: X @ (a * 2.0),
    "from the left": lambda a, b: (b * 1.5) @ Z.T,
    "masked inputs": lambda a, b: (X * a) @ np.array([1.0, -2.0]),
    "sum over features": lambda a, b: (X * a[None, :]).sum(-1),
    "two markers": lambda a, b: 0.5 + X @ a - Z @ b,
    "one marker twice": lambda a, b: X @ a + (X**2) @ (3 * a) + a[0],
    "rows of a matrix": lambda a, b: X @ (BOTH * a[:, None]),
    "columns of a matrix": lambda a, b: X @ (BOTH * b),
    "einsum": lambda a, b: jnp.einsum("nd,d,d->n", X, a, np.ones(2)),
    "batched": lambda a, b: jnp.einsum("nd,nd->n", X * a, X),
    "index and slice": lambda a, b: X[:, 0] * a[0] + X[:, 1] * a[1:][0] + b[::-1][0],
    "take": lambda a, b: a[np.array([0, 1, 1, 0])] * 2.0,
    "concatenation": lambda a, b: jnp.concatenate([a, np.ones(1), b]),
    "stack": lambda a, b: jnp.stack([X @ a, Z @ b, np.ones(4)], axis=1),
    "where": lambda a, b: jnp.where(X[:, 0] > 0, X @ a, Z @ b),
    "shapes": lambda a, b: (X @ a).reshape(2, 2).T[:, None] / 3.0,
    "cumulative": lambda a, b: jnp.cumsum(X @ a) * -1.0,
    "negative": lambda a, b: -(X @ a) - a.sum(),
    "inside jit": lambda a, b: inner(a) + 1.0,
    "a unit for all": lambda a, b: a[0] * X[:, 0],
    "log of exp": lambda a, b: jnp.log(jnp.exp(X @ a) * 2.0 / jnp.exp(Z @ b)),
    "elementwise": lambda a, b: b * np.array([1.0, 2.0, 3.0]) + 1.0,
}
LOG = {
    "exp": lambda a, b: jnp.exp(X @ a + 0.3),
    "exposure": lambda a, b: np.array([1.0, 2.0, 3.0, 4.0]) * jnp.exp(X @ a - Z @ b),
    "inverse": lambda a, b: 2.0 / jnp.exp(X @ a),
    "reshaped": lambda a, b: jnp.exp(X @ a).reshape(2, 2),
}
NEITHER = {
    "tanh": ("tanh", lambda a, b: jnp.tanh(X @ a)),
    "sigmoid": ("logistic", lambda a, b: jax.nn.sigmoid(X @ a)),
    "square": ("integer_pow", lambda a, b: (X @ a) ** 2),
    "two masks": ("mul", lambda a, b: a[0] * b),
    "both factors": ("dot_general", lambda a, b: (X @ a) @ (Z @ b)),
    "sum of exp": ("reduce_sum", lambda a, b: jnp.exp(X @ a).sum()),
    "exp plus one": ("add", lambda a, b: jnp.exp(X @ a) + 1.0),
    "minus exp": ("neg", lambda a, b: -jnp.exp(X @ a)),
    "times minus one": ("mul", lambda a, b: jnp.exp(X @ a) * -1.0),
    "denominator": ("div", lambda a, b: 1.0 / (X @ a)),
    "condition": ("gt", lambda a, b: jnp.where(X @ a > 0, 1.0, 2.0)),
    "clip": ("max", lambda a, b: jnp.maximum(X @ a, 0.0)),
    "relu": ("max", lambda a, b: jax.nn.relu(X @ a)),
    "loop": ("scan", lambda a, b: lax.scan(lambda c, x: (c + x, c), 0.0, X @ a)[1]),
    "integers": (
        "conversion to int64",
        lambda a, b: (X @ a).astype(int).astype(float),
    ),
}


def read(function):
    (found,) = follow(lambda masks: [function(masks["a"], masks["b"])], UNITS)
    return found


def over_all_masks(function):
    masks = np.array(list(product([0.0, 1.0], repeat=5)))
    keep = 1 - np.concatenate([RATES["a"], RATES["b"]])
    share = jnp.array(np.where(masks == 1, keep, 1 - keep).prod(1))
    values = jax.vmap(lambda m: function(m[:2], m[2:]))(masks)
    mean = jnp.tensordot(share, values, 1)
    return mean, jnp.tensordot(share, (values - mean) ** 2, 1)


@pytest.mark.parametrize("name", AFFINE)
def test_moments_are_those_over_all_masks(name):
    def both():
        found = read(AFFINE[name])
        assert isinstance(found, Affine) and not found.log
        moments = found.mean(MARKERS), found.variance(MARKERS)
        return moments, over_all_masks(AFFINE[name])

    found, wanted = jax.jit(both)()
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-13)
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-13)


@pytest.mark.parametrize("name", LOG)
def test_exponentials_are_those_over_all_masks(name):
    def both():
        found = read(LOG[name])
        assert isinstance(found, Affine) and found.log
        in_exp = over_all_masks(lambda a, b: jnp.log(LOG[name](a, b)))
        return (
            (found.mean(MARKERS), found.variance(MARKERS)),
            in_exp,
            (jnp.exp(found.log_mean_exp(MARKERS)), over_all_masks(LOG[name])[0]),
        )

    found, wanted, means = jax.jit(both)()
    np.testing.assert_allclose(found[0], wanted[0], atol=1e-13)
    np.testing.assert_allclose(found[1], wanted[1], atol=1e-13)
    np.testing.assert_allclose(means[0], means[1], rtol=1e-13)


@pytest.mark.parametrize("name", NEITHER)
def test_what_is_not_affine_is_named(name):
    operation, function = NEITHER[name]
    found = read(function)
    assert isinstance(found, Opaque)
    assert found.operation == operation


def test_what_masks_do_not_touch_is_a_plain_array():
    found = read(lambda a, b: jnp.tanh(X))
    np.testing.assert_allclose(found, np.tanh(X), rtol=1e-14)


def test_unused_nonlinear_values_do_no_harm():
    def function(a, b):
        assert jnp.tanh(a).shape == (2,)
        return X @ a

    assert isinstance(read(function), Affine)


def test_cost_grows_with_the_number_of_slopes_only():
    """1000 units and 200 rows: a (units, rows, units) array would need 1.6 GB."""
    x = jnp.ones((200, 1000))

    def slopes(x):
        def functions(masks):
            return [x @ masks["w"], (x * masks["w"]) @ jnp.ones(1000)]

        return [f.parts["w"].dense() for f in follow(functions, {"w": 1000})]

    assert [slope.shape for slope in jax.eval_shape(slopes, x)] == [(1000, 200)] * 2
    text = jax.jit(slopes).lower(x).as_text()
    assert "200x1000" in text
    assert "1000x200x1000" not in text
