"""Networks of probabilistic backpropagation on rows in any units."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from caveat.errors import ShapeError
from caveat.predictive.moment_matched import PROPAGATED, MomentPredictive
from caveat.training.pbp.learning import learn
from caveat.training.pbp.networks import PBPNetworks
from caveat.training.scaling import Scaling

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PBPFit:
    """Trained networks, and the units of each."""

    networks: PBPNetworks
    scalings: tuple[Scaling, ...]

    def predictive(self, x: Array, number: int = 0) -> MomentPredictive:
        """The Gaussian of a network for each row, in the units of y.

        Parameters
        ----------
        x : array, shape (rows, inputs)
            As it was given for training.
        number : int, default 0
            Of the network.

        Returns
        -------
        MomentPredictive, of shape (rows,)
        """
        scaling, own = self.scalings[number], self.networks.only(number)
        mean, variance = own.predict(_standard(x, scaling)[None])
        y_mean, y_std = scaling.y_mean[0], scaling.y_std[0]
        noise = own.noise.mean_variance[0] * y_std**2
        return MomentPredictive.of(
            torch.from_numpy(mean[0] * y_std + y_mean),
            torch.from_numpy(variance[0] * y_std**2),
            method=PROPAGATED,
            precision=float(1.0 / noise),
        )

    def at_means(self, x: Array, number: int = 0) -> Array:
        """What a network says whose weights are their means; arguments as above."""
        scaling = self.scalings[number]
        found = self.networks.only(number).at_means(_standard(x, scaling)[None])
        return np.asarray(found[0] * scaling.y_std[0] + scaling.y_mean[0])


def fit_pbp(
    xs: Sequence[Array],
    ys: Sequence[Array],
    *,
    hidden: Sequence[int],
    n_epochs: int,
    seeds: Sequence[int],
    progress: bool | None = False,
) -> PBPFit:
    """A network for each set of rows, trained as one; units are those of its own rows.

    Parameters
    ----------
    xs : sequence of array, shape (rows, inputs)
        All of the same shape.
    ys : sequence of array, shape (rows,)
        Targets.
    hidden, n_epochs, seeds, progress
        As for :func:`caveat.training.pbp.learn`.

    Returns
    -------
    PBPFit
    """
    if len({x.shape for x in xs}) != 1:
        raise ShapeError(
            f"Networks that learn as one need equally many rows and columns. "
            f"Got {sorted({x.shape for x in xs})}; call once for each shape."
        )
    scalings = tuple(Scaling.of(x, y[:, None]) for x, y in zip(xs, ys, strict=True))
    networks = learn(
        np.stack([_standard(x, s) for x, s in zip(xs, scalings, strict=True)]),
        np.stack([(y - s.y_mean) / s.y_std for y, s in zip(ys, scalings, strict=True)]),
        hidden=hidden,
        n_epochs=n_epochs,
        seeds=seeds,
        progress=progress,
    )
    return PBPFit(networks, scalings)


def _standard(x: Array, scaling: Scaling) -> Array:
    """x in standard units, float64."""
    return np.asarray((x - scaling.x_mean) / scaling.x_std)
