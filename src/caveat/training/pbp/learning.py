"""Passes over the data: every row is absorbed by moment matching, then the prior."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from caveat._progress import ProgressBar
from caveat.errors import DivergedError, ShapeError
from caveat.training.pbp.compiled import all_absorbed
from caveat.training.pbp.gamma import Gamma
from caveat.training.pbp.layers import Values
from caveat.training.pbp.networks import PBPNetworks, initial
from caveat.training.pbp.prior import refined

Array = NDArray[np.float64]


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
    with ProgressBar("rows absorbed", n_epochs * y.size, progress) as bar:
        for _ in range(n_epochs):
            order = np.stack([g.permutation(n_rows) for g in generators], 1)
            networks = all_absorbed(networks, rows[own, order], y[own, order], bar)
            networks = refined(networks)
    _check(networks)
    return networks


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
