"""Models with markers, and their densities written out by summing over all masks.

The direct densities use no part of Caveat or of NumPyro's distributions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import gammaln

from caveat import maxent

X = np.array([[1, 0.5], [-0.4, 1.2], [0.8, -1], [0.3, 0.9]])
LABELS = np.array([1, 0, 1, 1])
COUNTS = np.array([3, 1, 0, 2])
Y = np.array([1.2, 0.1, 0.4, 0.9])
PRIOR_SD = 2.0


@dataclass(frozen=True)
class Case:
    """A model, its data, its drop rates and what it says directly about a mask."""

    model: Callable[..., Any]
    args: tuple[Any, ...]
    rates: tuple[float, ...]
    n_parameters: int
    log_likelihoods: Callable[[Any, Any], Any]  # (parameters, mask) -> (data,)


def weights(n):
    return numpyro.sample("w", dist.Normal(0.0, PRIOR_SD).expand([n]).to_event(1))


def logistic(x, y=None, rate=0.4):
    w = maxent.dropout("w", weights(x.shape[1]), rate)
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)


def poisson(x, y=None, rate=(0.3, 0.6)):
    w = maxent.dropout("w", weights(2), np.array(rate))
    numpyro.sample("y", dist.Poisson(2.0 * jnp.exp(0.1 + x @ w)), obs=y)


def gaussian(x, y=None, rate=0.4):
    w = weights(2)
    x = maxent.dropout("x", x, rate, units=1, data=0)
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(x @ w + 0.2, 0.5), obs=y)


def tanh_net(x, y=None, rates=(0.2, 0.5)):
    """Two inputs and two hidden units, both dropped; three free weights."""
    w = weights(3)
    first = jnp.stack([w[:2], w[1:]], axis=1)
    first = maxent.dropout("inputs", first, rates[0], units=0)
    hidden = jnp.tanh(x @ first)
    hidden = maxent.dropout("hidden", hidden, rates[1], units=1, data=0)
    with numpyro.plate("data", len(x)):
        numpyro.sample("y", dist.Normal(hidden @ jnp.array([1.0, -0.5]), 0.5), obs=y)


def _bernoulli(w, mask):
    eta = X @ (mask * w)
    return LABELS * eta - jnp.logaddexp(0.0, eta)


def _poisson(w, mask):
    eta = jnp.log(2.0) + 0.1 + X @ (mask * w)
    return COUNTS * eta - jnp.exp(eta) - gammaln(COUNTS + 1.0)


def _normal(residual, sd):
    return -0.5 * (residual / sd) ** 2 - jnp.log(sd) - 0.5 * jnp.log(2 * jnp.pi)


def _gaussian(w, mask):
    return _normal(Y - X @ (mask * w) - 0.2, 0.5)


def _net(w, mask):
    first = jnp.array([[w[0], w[1]], [w[1], w[2]]]) * mask[:2, None]
    hidden = jnp.tanh(X @ first) * mask[2:]
    return _normal(Y - hidden @ jnp.array([1.0, -0.5]), 0.5)


CASES = {
    "logistic": Case(logistic, (X, LABELS), (0.4, 0.4), 2, _bernoulli),
    "poisson": Case(poisson, (X, COUNTS), (0.3, 0.6), 2, _poisson),
    "gaussian": Case(gaussian, (X, Y), (0.4, 0.4), 2, _gaussian),
    "tanh": Case(tanh_net, (X, Y), (0.2, 0.2, 0.5, 0.5), 3, _net),
}


def all_masks(rates):
    """Every mask and its probability."""
    masks = np.array(list(product([0.0, 1.0], repeat=len(rates))))
    return masks, np.where(masks == 1.0, 1 - np.array(rates), rates).prod(1)


def log_prior(w):
    return jnp.sum(_normal(w, PRIOR_SD))


def expected(case: Case, w):
    """sum_i sum_m π(m) log q(x_i | m∘θ)."""
    masks, probabilities = all_masks(case.rates)
    each = jax.vmap(lambda mask: case.log_likelihoods(w, mask))(masks)
    return (probabilities @ each).sum()


def mixed(case: Case, w):
    """sum_i log sum_m π(m) q(x_i | m∘θ)."""
    masks, probabilities = all_masks(case.rates)
    each = jax.vmap(lambda mask: case.log_likelihoods(w, mask))(masks)
    return jnp.log(probabilities @ jnp.exp(each)).sum()


def direct(case: Case):
    return jax.jit(lambda w: log_prior(w) + expected(case, w))


def density(model, *args):
    """The log density of a model in its weights, all other things given."""
    log_density = numpyro.infer.util.log_density
    return jax.jit(lambda w: log_density(model, args, {}, {"w": w})[0])


def moments_on_grid(log_density, n_parameters, *, reach=9.0, points=181):
    """log Z, mean and covariance by the trapezoid rule."""
    axis = jnp.linspace(-reach, reach, points)
    grid = jnp.stack(jnp.meshgrid(*[axis] * n_parameters, indexing="ij"), -1)
    grid = grid.reshape(-1, n_parameters)
    values = jax.lax.map(log_density, grid, batch_size=4096)
    log_z = jax.scipy.special.logsumexp(values) + n_parameters * jnp.log(
        axis[1] - axis[0]
    )
    share = jax.nn.softmax(values)
    mean = share @ grid
    centred = grid - mean
    return log_z, mean, (centred * share[:, None]).T @ centred
