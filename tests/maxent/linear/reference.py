"""The model restated naively: dense matrices, every mask, theory's worked example."""

from itertools import product

import numpy as np
import scipy.sparse as sp

from caveat.maxent.linear import Design, Features, make_noise
from caveat.maxent.linear.intercept import WITHOUT

# X, y, f = .4, lambda0 = .5, Jeffreys: the worked example of paper 002's model
X = np.array([[1.0, 0.5], [-0.4, 1.2], [0.8, -1.0], [0.3, 0.9]])
Y = np.array([1.2, 0.1, 0.4, 0.9])
NEW = np.array([[0.7, -1.1]])


def worked_example(intercept=WITHOUT) -> Design:
    return Design(Features(X), make_noise(0.4, 2), 0.5, intercept)


def random_data(n, p, *, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p)) * np.exp(rng.normal(size=p))
    if sparse:
        x *= rng.random((n, p)) < 0.4
    y = x @ rng.normal(size=p) + rng.normal(size=n) + 2.0
    return (sp.csr_array(x) if sparse else x), y


def second_moment(noise):
    """E[xi xi'], p by p, from means, variances and groups."""
    r, c = noise.mean, noise.variance
    p = len(r)
    groups = np.arange(p) if noise.groups is None else noise.groups
    same = groups[:, None] == groups
    return np.outer(r, r) + same * c


def naive_posterior(x, y, noise, prior_precision):
    """Lambda, mu and s by their definitions, without intercept."""
    precision = prior_precision * np.eye(x.shape[1]) + (x.T @ x) * second_moment(noise)
    mean = np.linalg.solve(precision, noise.mean * (x.T @ y))
    return precision, mean, y @ y - mean @ precision @ mean


def masks_and_chances(rates):
    """Every mask with its probability, the empty one included."""
    masks = np.array(list(product([0.0, 1.0], repeat=len(rates))))
    chances = np.where(masks == 1.0, 1.0 - rates, rates).prod(1)
    return masks, chances


def expected_log_likelihood(x, y, weights, variance, rates):
    """sum_i E_m log N(y_i; x_i'(m o w), v), by enumerating masks."""
    masks, chances = masks_and_chances(np.asarray(rates))
    gaps = y - (masks * weights) @ x.T
    logs = -0.5 * gaps**2 / variance - 0.5 * np.log(2 * np.pi * variance)
    return float(chances @ logs.sum(1))
