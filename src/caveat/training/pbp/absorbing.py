"""One row per network absorbed, in numpy: assumed density filtering."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caveat.training.pbp.gamma import matched, normalisers
from caveat.training.pbp.layers import (
    Values,
    Weights,
    input_slopes,
    updated,
    weight_slopes,
)
from caveat.training.pbp.networks import PBPNetworks, Trace, propagated
from caveat.training.pbp.rectified import rectified_slopes

Array = NDArray[np.float64]
Slopes = list[tuple[Array, Array]]


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
