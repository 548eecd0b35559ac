"""Networks and rows that several tests share."""

import numpy as np

from caveat.training.pbp import initial
from caveat.training.pbp.gamma import Gamma
from caveat.training.pbp.layers import Weights
from caveat.training.pbp.networks import PBPNetworks


def some_networks(hidden, count=3, n_inputs=4, spread=1.0):
    """Networks away from their start, with weights of all sizes."""
    generator = np.random.default_rng(5)
    made = initial(n_inputs, hidden, [np.random.default_rng(k) for k in range(count)])
    layers = tuple(
        Weights(
            spread * generator.normal(size=w.mean.shape),
            generator.gamma(0.5, size=w.mean.shape) + 1e-3,
        )
        for w in made.layers
    )
    noise = Gamma(6.0 + generator.random(count), 2.0 + generator.random(count))
    return PBPNetworks(layers, noise, made.prior, made.factors)


def some_rows(count=3, n_rows=30, n_inputs=4):
    generator = np.random.default_rng(1)
    x = generator.normal(size=(count, n_rows, n_inputs))
    return x, np.abs(x[..., 0]) + 0.1 * generator.normal(size=(count, n_rows))
