"""The prior of the weights, approximated anew: one round of expectation propagation."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from caveat.training.pbp.gamma import Gamma, matched, normalisers
from caveat.training.pbp.layers import Weights
from caveat.training.pbp.networks import PBPNetworks, PriorFactors

Array = NDArray[np.float64]

_WIDEST = 1e6  # variance that the data alone give a weight, beyond which it is left


def refined(networks: PBPNetworks) -> PBPNetworks:
    """The networks after the factor of the prior of every weight was replaced in turn.

    The old factor is taken out, the exact one put in, and the moments of the result give
    the new one. All weights of a network share one gamma, so each follows the last.

    Parameters
    ----------
    networks : PBPNetworks
        After a pass over the data.

    Returns
    -------
    PBPNetworks
        New arrays.
    """
    mean = _flat([w.mean for w in networks.layers])
    variance = _flat([w.variance for w in networks.layers])
    old = networks.factors
    precision, shape, rate = (
        old.precision.T.copy(),
        old.shape.T.copy(),
        old.rate.T.copy(),
    )
    # Each weight as the data alone leave it
    own_precision = 1.0 / variance - precision
    own_shift = mean / variance
    wide = ~(own_precision > 1.0 / _WIDEST)
    gamma = networks.prior
    for place in range(len(mean)):  # (weights, networks), in the order of the layers
        without = Gamma(gamma.shape - shape[place], gamma.rate + rate[place])
        left = wide[place] | ~((without.shape > 1.0) & (without.rate > 0.0))
        own = 1.0 / own_precision[place]
        after = matched(without, normalisers(own_shift[place] * own, own, without))
        # E176: the prior of a weight counts as N(0, b / (a - 1)), (a, b) without it
        found = (
            1.0 / without.mean_variance,
            after.shape - without.shape,
            without.rate - after.rate,
        )
        if left.any():
            kept = (precision[place], shape[place], rate[place])
            found = tuple(
                np.where(left, k, f) for k, f in zip(kept, found, strict=True)
            )
            after = Gamma(
                np.where(left, gamma.shape, after.shape),
                np.where(left, gamma.rate, after.rate),
            )
        precision[place], shape[place], rate[place] = found
        gamma = after
    total = own_precision + precision
    return replace(
        networks,
        layers=_like(networks.layers, own_shift / total, 1.0 / total),
        prior=gamma,
        factors=PriorFactors(precision.T.copy(), shape.T.copy(), rate.T.copy()),
    )


def _flat(arrays: Sequence[Array]) -> Array:
    """One array (weights, networks)."""
    return np.concatenate([a.reshape(len(a), -1) for a in arrays], 1).T.copy()


def _like(
    layers: Sequence[Weights], mean: Array, variance: Array
) -> tuple[Weights, ...]:
    """The way back, to the shapes of some layers."""
    sizes = [w.mean[0].size for w in layers]
    ends = np.cumsum(sizes)
    return tuple(
        Weights(
            mean[end - size : end].T.copy().reshape(w.mean.shape),
            variance[end - size : end].T.copy().reshape(w.mean.shape),
        )
        for w, size, end in zip(layers, sizes, ends, strict=True)
    )
