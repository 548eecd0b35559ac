"""Passes over the data: every row is absorbed by moment matching, then the prior."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caveat._progress import ProgressBar
from caveat.errors import DivergedError, ShapeError
from caveat.training.pbp.gamma import Gamma, matched, normalisers
from caveat.training.pbp.layers import (
    Values,
    Weights,
    input_slopes,
    updated,
    weight_slopes,
)
from caveat.training.pbp.networks import PBPNetworks, Trace, initial, propagated
from caveat.training.pbp.prior import refined
from caveat.training.pbp.rectified import rectified_slopes

Array = NDArray[np.float64]
Slopes = list[tuple[Array, Array]]


def learn(
    x: Array,
    y: Array,
    *,
    hidden: Sequence[int] = (50,),
    n_epochs: int = 40,
    seeds: Sequence[int],
    progress: bool | None = False,
) -> PBPNetworks:
    """Train a network on each of several sets of rows, as one.

    Parameters
    ----------
    x : array, shape (networks, rows, inputs)
        In standard units.
    y : array, shape (networks, rows)
        In standard units.
    hidden : sequence of int, default (50,)
        Widths of the hidden layers.
    n_epochs : int, default 40
        Passes over the rows, each in a new order. Rows are absorbed anew in each, as
        the authors do: variances fall with the number of passes.
    seeds : sequence of int
        Of each network; no network depends on its neighbours.
    progress : bool or None, default False
        As for :class:`caveat._progress.ProgressBar`.

    Returns
    -------
    PBPNetworks
    """
    if x.ndim != 3 or y.shape != x.shape[:2] or len(seeds) != len(x):
        raise ShapeError(
            f"Expected x (networks, rows, inputs), y (networks, rows) and a seed per "
            f"network. Got {x.shape}, {y.shape} and {len(seeds)} seeds."
        )
    generators = [np.random.default_rng(seed) for seed in seeds]
    networks = initial(x.shape[2], hidden, generators)
    rows = Values(x).with_bias().mean
    n_rows, own = x.shape[1], np.arange(len(x))
    with (
        ProgressBar("rows absorbed", n_epochs * n_rows, progress) as bar,
        np.errstate(all="ignore"),  # what is not finite is looked for
    ):
        for _ in range(n_epochs):
            order = np.stack([g.permutation(n_rows) for g in generators], 1)
            for row, target in zip(rows[own, order], y[own, order], strict=True):
                networks = absorbed(networks, row, target)
                bar.advance()
            networks = refined(networks)
    _check(networks)
    return networks


def absorbed(networks: PBPNetworks, x: Array, y: Array) -> PBPNetworks:
    """The networks after one row each: assumed density filtering.

    Parameters
    ----------
    networks : PBPNetworks
        Before.
    x : array, shape (networks, inputs + 1)
        The rows, ending with a 1 for the bias.
    y : array, shape (networks,)
        Their targets.

    Returns
    -------
    PBPNetworks
        New arrays.
    """
    trace = propagated(networks.layers, Values(x[:, None, :]))
    error = y - trace.mean[:, 0, 0]
    z = normalisers(error, trace.variance[:, 0, 0], networks.noise)
    slopes = log_z_slopes(networks.layers, trace, error, z.total)
    layers = [updated(w, *own) for w, own in zip(networks.layers, slopes, strict=True)]
    noise = matched(networks.noise, z)
    return PBPNetworks(tuple(layers), noise, networks.prior, networks.factors)


def log_z_slopes(
    layers: Sequence[Weights], trace: Trace, error: Array, total: Array
) -> Slopes:
    """Derivatives of log Z = log N(error; 0, total) by all means and variances.

    Parameters
    ----------
    layers : sequence of Weights
        Of the networks.
    trace : Trace
        Of one row per network.
    error, total : array, shape (networks,)
        y minus the mean of the output, and the variance of y.

    Returns
    -------
    list of (array, array)
        By the means and the variances of each layer.
    """
    # E177: dlogZ/dm = e / v;  dlogZ/dv = (e^2 / v - 1) / 2v
    d_mean = (error / total)[:, None, None]
    d_variance = (0.5 * (error * error / total - 1.0) / total)[:, None, None]
    slopes: Slopes = []
    for place in range(len(layers) - 1, -1, -1):
        weights, inputs = layers[place], trace.inputs[place]
        slopes.append(weight_slopes(weights, inputs, d_mean, d_variance))
        if place:
            below = input_slopes(weights, inputs, d_mean, d_variance)
            d_mean, d_variance = rectified_slopes(
                trace.units[place - 1], below[0][..., :-1], below[1][..., :-1]
            )
    return slopes[::-1]


def _check(networks: PBPNetworks) -> None:
    arrays = [a for w in networks.layers for a in (w.mean, w.variance)]
    gammas: list[Gamma] = [networks.noise, networks.prior]
    arrays += [a for gamma in gammas for a in gamma]
    if not all(np.isfinite(a).all() for a in arrays) or not all(
        (w.variance > 0).all() for w in networks.layers
    ):
        raise DivergedError(
            "Probabilistic backpropagation ended with weights that are no numbers, or "
            "variances of 0 or less. Look for extreme values in X or y."
        )
