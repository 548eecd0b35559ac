"""Networks of probabilistic backpropagation: their state, start, and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from caveat.training.pbp.gamma import Gamma
from caveat.training.pbp.layers import Values, Weights, forward
from caveat.training.pbp.rectified import Rectified, rectified

Array = NDArray[np.float64]

GAMMA = 6.0  # shape and rate of both priors, in standard units: worth six observations


@dataclass(frozen=True, eq=False)
class PriorFactors:
    """Natural parameters of what stands for the prior of each weight.

    Shape (networks, weights), weights in the order of layers, outputs, inputs. Their
    means are 0, as those of the prior.
    """

    precision: Array
    shape: Array  # what the weight adds to the gamma of prior precisions
    rate: Array


@dataclass(frozen=True, eq=False)
class PBPNetworks:
    """Independent networks of one architecture, in standard units.

    Attributes
    ----------
    layers : tuple of Weights
        Means and variances, shape (networks, outputs, inputs + 1), the bias last.
    noise, prior : Gamma
        Of the precisions of the noise and of the weights' prior, one per network.
    factors : PriorFactors
        What the prior has contributed to the weights so far.
    """

    layers: tuple[Weights, ...]
    noise: Gamma
    prior: Gamma
    factors: PriorFactors

    def __len__(self) -> int:
        return len(self.noise.shape)

    def predict(self, x: Array) -> tuple[Array, Array]:
        """Mean and variance of outputs, without noise.

        Parameters
        ----------
        x : array, shape (networks, rows, inputs) or (1, rows, inputs)
            In standard units.

        Returns
        -------
        tuple of array, shape (networks, rows)
        """
        trace = propagated(self.layers, Values(x).with_bias())
        return trace.mean[..., 0], trace.variance[..., 0]

    def at_means(self, x: Array) -> Array:
        """Outputs (networks, rows) of networks whose weights are their means."""
        values = x
        for place, weights in enumerate(self.layers):
            inputs = Values(values).with_bias().mean
            scale = np.sqrt(inputs.shape[-1])
            values = inputs @ weights.mean.swapaxes(-1, -2) / scale
            if place < len(self.layers) - 1:
                values = np.maximum(values, 0.0)
        return np.asarray(values[..., 0])

    def only(self, number: int) -> "PBPNetworks":
        """One of the networks."""
        own = slice(number, number + 1)
        return PBPNetworks(
            tuple(Weights(w.mean[own], w.variance[own]) for w in self.layers),
            Gamma(*(a[own] for a in self.noise)),
            Gamma(*(a[own] for a in self.prior)),
            PriorFactors(*(a[own] for a in vars(self.factors).values())),
        )


@dataclass(frozen=True, eq=False)
class Trace:
    """A pass: what entered each layer, hidden units, and the output."""

    inputs: list[Values]
    units: list[Rectified]
    mean: Array
    variance: Array


def propagated(layers: Sequence[Weights], x: Values) -> Trace:
    """Mean and variance of x, a bias in it, through all layers, rectified between."""
    inputs, units = [x], []
    mean, variance = forward(layers[0], x)
    for weights in layers[1:]:
        units.append(rectified(mean, variance))
        inputs.append(Values(units[-1].mean, units[-1].variance).with_bias())
        mean, variance = forward(weights, inputs[-1])
    return Trace(inputs, units, mean, variance)


def initial(
    n_inputs: int, hidden: Sequence[int], generators: Sequence[np.random.Generator]
) -> PBPNetworks:
    """Networks before any data, one per generator.

    Means are drawn from N(0, 1 / inputs), which breaks the symmetry of the units;
    variances are those of the prior.

    Parameters
    ----------
    n_inputs : int
        Features.
    hidden : sequence of int
        Widths of the hidden layers.
    generators : sequence of Generator
        Of each network.

    Returns
    -------
    PBPNetworks
    """
    widths = [n_inputs, *hidden, 1]
    count = len(generators)
    shapes = [(o, i + 1) for i, o in pairwise(widths)]
    drawn = [[g.standard_normal(s) for s in shapes] for g in generators]
    start = GAMMA / (GAMMA - 1.0)
    layers = []
    for place, shape in enumerate(shapes):
        mean = np.stack([own[place] for own in drawn]) / np.sqrt(shape[1])
        layers.append(Weights(mean, np.full(mean.shape, start)))
    n_weights = sum(o * i for o, i in shapes)
    none = np.zeros((count, n_weights))
    gamma = Gamma(np.full(count, GAMMA), np.full(count, GAMMA))
    factors = PriorFactors(none + 1.0 / start, none, none)
    return PBPNetworks(tuple(layers), gamma, gamma, factors)
