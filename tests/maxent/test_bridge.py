"""The weights a dropout network converges to are the mode of the posterior.

Papers 000 and 001 minimise the expected squared error under masks plus weight decay;
eq. 10 of paper 002 has the same log density, with prior precision p l² on weights and
l² on biases. Torch stores W = p M (inverted dropout); the posterior has M.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import torch
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize
from torch import nn

from caveat import maxent
from caveat.noise import weight_decay_groups
from caveat.theory import Loss
from tests.maxent.cases import X, Y, all_masks

pytestmark = pytest.mark.usefixtures("x64")

KEEP, PRECISION, LENGTHSCALE = 0.8, 4.0, 0.7
N_HIDDEN = 3


def network():
    """Dropout before both layers, two inputs, three hidden units."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Dropout(1 - KEEP),
        nn.Linear(2, N_HIDDEN),
        nn.Tanh(),
        nn.Dropout(1 - KEEP),
        nn.Linear(N_HIDDEN, 1),
    ).double()


def under_mask(net, x, mask):
    """What ``net`` computes when its dropout layers draw ``mask``."""
    hidden = torch.tanh(net[1](x * mask[:2] / KEEP))
    return net[4](hidden * mask[2:] / KEEP).squeeze(-1)


def trained():
    """The network at the minimum of its exact expected objective."""
    net, x, y = network(), torch.tensor(X), torch.tensor(Y)
    masks, probabilities = map(torch.tensor, all_masks([1 - KEEP] * 5))
    groups = weight_decay_groups(
        net,
        lengthscale=LENGTHSCALE,
        precision=PRECISION,
        n_train=len(x),
        loss=Loss.half_squared_error(),
    )
    optimiser = torch.optim.LBFGS(
        net.parameters(), max_iter=2000, tolerance_grad=1e-12, tolerance_change=1e-15
    )

    def objective():
        optimiser.zero_grad()
        passes = torch.stack([under_mask(net, x, mask) for mask in masks])
        loss = probabilities @ (passes - y).square().mean(1) / 2
        for group in groups:
            decayed = sum(p.square().sum() for p in group["params"])
            loss = loss + group["weight_decay"] / 2 * decayed
        loss.backward()
        return loss

    for _ in range(5):
        optimiser.step(objective)
    return net


def bayesian_network(x, y):
    """The same network with priors; M keeps torch's (outputs, inputs) layout."""
    weight = dist.Normal(0.0, 1 / (LENGTHSCALE * np.sqrt(KEEP)))
    bias = dist.Normal(0.0, 1 / LENGTHSCALE)
    m1 = numpyro.sample("1.weight", weight.expand([N_HIDDEN, 2]).to_event(2))
    b1 = numpyro.sample("1.bias", bias.expand([N_HIDDEN]).to_event(1))
    m2 = numpyro.sample("4.weight", weight.expand([1, N_HIDDEN]).to_event(2))
    b2 = numpyro.sample("4.bias", bias.expand([1]).to_event(1))
    m1 = maxent.dropout("inputs", m1, 1 - KEEP, units=1)
    m2 = maxent.dropout("hidden", m2, 1 - KEEP, units=1)
    output = jnp.tanh(x @ m1.T + b1) @ m2.T + b2
    noise = 1 / np.sqrt(PRECISION)
    numpyro.sample("y", dist.Normal(output.squeeze(-1), noise), obs=y)


@pytest.fixture(scope="module")
def trained_weights():
    """M of the trained network: its weights W over the keep probability."""
    return {
        name: value.numpy() / (KEEP if name.endswith("weight") else 1.0)
        for name, value in trained().state_dict().items()
    }


def flat_density(values):
    """The weights as a vector, and the log density with its gradient there."""
    point, unravel = ravel_pytree({k: jnp.array(v) for k, v in values.items()})
    model = maxent.posterior(bayesian_network)

    def log_density(point):
        log_density = numpyro.infer.util.log_density
        return log_density(model, (X, Y), {}, unravel(point))[0]

    return np.array(point), jax.jit(jax.value_and_grad(log_density))


def test_trained_weights_are_a_mode_of_the_posterior(trained_weights):
    point, log_density = flat_density(trained_weights)
    np.testing.assert_allclose(log_density(point)[1], 0.0, atol=1e-6)
    small = 1e-4 * np.eye(len(point))
    curvature = [
        (log_density(point + step)[1] - log_density(point - step)[1]) / 2e-4
        for step in small
    ]
    assert np.linalg.eigvalsh((curvature + np.transpose(curvature)) / 2).max() < 0
    # weights as torch stores them are no mode, so the check can fail
    stored = {
        name: value * (KEEP if name.endswith("weight") else 1.0)
        for name, value in trained_weights.items()
    }
    assert np.abs(log_density(flat_density(stored)[0])[1]).max() > 0.01


def test_the_mode_found_from_the_posterior_is_the_trained_network(trained_weights):
    point, log_density = flat_density(trained_weights)
    start = point + np.random.default_rng(0).normal(size=len(point)) / 20
    found = minimize(
        lambda p: [-np.array(part) for part in log_density(p)],
        start,
        jac=True,
        tol=1e-10,
    )
    assert np.abs(start - point).max() > 0.05
    np.testing.assert_allclose(found.x, point, atol=1e-5)
