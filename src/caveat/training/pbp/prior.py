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


@np.errstate(all="ignore")  # of weights that are left, nothing is used
def refined(networks: PBPNetworks) -> PBPNetworks:
    """The networks after the factor of the prior of every weight was replaced in turn.

    The old factor is taken out, the exact one put in, and the moments of the result
    give the new one. All weights of a network share one gamma, so each follows the
    last.

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
    factors = PriorFactors(*(np.array(a.T) for a in vars(networks.factors).values()))
    # Each weight as the data alone leave it
    precision, shift = 1.0 / variance - factors.precision, mean / variance
    gamma = networks.prior
    for place in range(len(mean)):
        gamma = _replaced(gamma, factors, place, precision[place], shift[place])
    total = precision + factors.precision
    return replace(
        networks,
        layers=_like(networks.layers, shift / total, 1.0 / total),
        prior=gamma,
        factors=PriorFactors(*(np.array(a.T) for a in vars(factors).values())),
    )


def _replaced(
    gamma: Gamma, factors: PriorFactors, place: int, precision: Array, shift: Array
) -> Gamma:
    """The gamma after the factors of one weight per network; writes to ``factors``."""
    shape, rate = factors.shape[place], factors.rate[place]
    without = Gamma(gamma.shape - shape, gamma.rate + rate)
    own = 1.0 / precision
    after = matched(without, normalisers(shift * own, own, without))
    usable = (precision > 1.0 / _WIDEST) & (without.shape > 1.0) & (without.rate > 0.0)
    # E176: the prior of a weight counts as N(0, b / (a - 1)), (a, b) without it
    found = 1.0 / without.mean_variance
    np.copyto(factors.precision[place], found, where=usable)
    np.copyto(shape, after.shape - without.shape, where=usable)
    np.copyto(rate, without.rate - after.rate, where=usable)
    return Gamma(
        np.where(usable, after.shape, gamma.shape),
        np.where(usable, after.rate, gamma.rate),
    )


def _flat(arrays: Sequence[Array]) -> Array:
    """One array (weights, networks), in the order of the layers."""
    return np.array(np.concatenate([a.reshape(len(a), -1) for a in arrays], 1).T)


def _like(
    layers: Sequence[Weights], mean: Array, variance: Array
) -> tuple[Weights, ...]:
    """The way back, to the shapes of some layers."""
    ends = np.cumsum([w.mean[0].size for w in layers])[:-1]
    return tuple(
        Weights(m.T.reshape(w.mean.shape), v.T.reshape(w.mean.shape))
        for w, m, v in zip(
            layers, np.split(mean, ends), np.split(variance, ends), strict=True
        )
    )
