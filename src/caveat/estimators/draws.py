"""Draws of several trained networks, pooled."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import Tensor, nn

from caveat._random import as_seed
from caveat.noise import GaussianNoise, NoisyModule
from caveat.sampling.mcdropout import MCDropout

_LARGEST = 2**31 - 1


def seed_of(random_state: Any) -> int:
    """A seed from an int, a NumPy generator of either kind, or fresh entropy."""
    if random_state is None:
        return as_seed(None) % _LARGEST
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_LARGEST))
    return int(check_random_state(random_state).randint(_LARGEST))


def stream(*seeds: int) -> int:
    """One seed that differs whenever one of several does."""
    return int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0] >> 1)


def pooled_draws(
    networks: Sequence[nn.Module], x: Tensor, *, n_draws: int, seed: int
) -> Tensor:
    """Draws of all networks, which take turns; in float64.

    One set of masks serves all rows, so the draws of a row do not depend on the others.
    A network without noise has a single draw.

    Parameters
    ----------
    networks : sequence of nn.Module
        With the same noise.
    x : Tensor, shape (rows, inputs)
        In the units of the networks.
    n_draws : int
        Per network.
    seed : int
        Of the masks; each network has its own.

    Returns
    -------
    Tensor, shape (draws of all networks, rows, outputs)
    """
    parts = [
        _draws(network, x.double(), n_draws, stream(seed, number))
        for number, network in enumerate(networks)
    ]
    return torch.stack(parts, 1).flatten(0, 1)


def _draws(network: nn.Module, x: Tensor, n_draws: int, seed: int) -> Tensor:
    wide = deepcopy(network).double()
    if not _has_noise(network):
        with torch.no_grad():
            return wide(x).unsqueeze(0)
    drawn = MCDropout(wide, seed=seed).draws(x, n_draws=n_draws, progress=False)
    assert isinstance(drawn, Tensor)
    return drawn


def _has_noise(network: nn.Module) -> bool:
    kinds = (nn.Dropout, GaussianNoise, NoisyModule)
    return any(isinstance(module, kinds) for module in network.modules())
