"""A linear layer of independent Gaussian weights: forward, backward, update."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_VARIANCE = 1e-100  # updates that would go below are left out


@dataclass(frozen=True, eq=False)
class Weights:
    """Means and variances of weights, shape (networks, outputs, inputs)."""

    mean: Array
    variance: Array


@dataclass(frozen=True, eq=False)
class Values:
    """Means and variances of what enters or leaves a layer.

    Shape (networks, rows, units); no variances are variances of 0.
    """

    mean: Array
    variance: Array | None = None

    def with_bias(self) -> "Values":
        """The same with one more unit, which is always 1."""
        one = np.ones((*self.mean.shape[:-1], 1))
        mean = np.concatenate([self.mean, one], -1)
        if self.variance is None:
            return Values(mean)
        return Values(mean, np.concatenate([self.variance, 0.0 * one], -1))

    @property
    def second_moment(self) -> Array:
        """Mean squares."""
        square = self.mean * self.mean
        return square if self.variance is None else square + self.variance


def forward(weights: Weights, inputs: Values) -> tuple[Array, Array]:
    """Mean and variance of w z / sqrt(inputs), shape (networks, rows, outputs)."""
    n_inputs = weights.mean.shape[-1]
    # E172: m = M z / sqrt(n);  v = (V (z^2 + u) + M^2 u) / n
    mean = inputs.mean @ weights.mean.swapaxes(-1, -2)
    variance = inputs.second_moment @ weights.variance.swapaxes(-1, -2)
    if inputs.variance is not None:
        variance += inputs.variance @ np.square(weights.mean).swapaxes(-1, -2)
    mean /= math.sqrt(n_inputs)
    variance /= n_inputs
    return mean, variance


def weight_slopes(
    weights: Weights, inputs: Values, d_mean: Array, d_variance: Array
) -> tuple[Array, Array]:
    """Derivatives by means and variances of weights, for one row per network.

    Parameters
    ----------
    weights : Weights
        Of the layer.
    inputs : Values
        What entered it, shape (networks, 1, inputs).
    d_mean, d_variance : array, shape (networks, 1, outputs)
        Derivatives by the results of :func:`forward`.

    Returns
    -------
    tuple of array, shape (networks, outputs, inputs)
    """
    n_inputs = weights.mean.shape[-1]
    by_m = d_mean.swapaxes(-1, -2) / math.sqrt(n_inputs)
    by_v = d_variance.swapaxes(-1, -2) / n_inputs
    d_weight = by_m * inputs.mean
    if inputs.variance is not None:
        d_weight += 2.0 * by_v * (weights.mean * inputs.variance)
    return d_weight, by_v * inputs.second_moment


def input_slopes(
    weights: Weights, inputs: Values, d_mean: Array, d_variance: Array
) -> tuple[Array, Array]:
    """Derivatives by means and variances of the inputs; arguments as above."""
    n_inputs = weights.mean.shape[-1]
    by_m, by_v = d_mean / math.sqrt(n_inputs), d_variance / n_inputs
    d_input = by_m @ weights.mean + 2.0 * inputs.mean * (by_v @ weights.variance)
    return d_input, by_v @ (weights.variance + np.square(weights.mean))


def updated(weights: Weights, d_mean: Array, d_variance: Array) -> Weights:
    """The Gaussians that match the moments after a factor of normaliser Z.

    A weight whose variance would not be a positive number keeps what it had.

    Parameters
    ----------
    weights : Weights
        Before.
    d_mean, d_variance : array
        Derivatives of log Z by them.

    Returns
    -------
    Weights
        New arrays.
    """
    # E173: m + v dlogZ/dm;  v - v^2 ((dlogZ/dm)^2 - 2 dlogZ/dv)
    old = weights.variance
    step = old * d_mean
    mean = weights.mean + step
    variance = old * d_variance
    variance *= 2.0
    variance += 1.0
    variance *= old
    variance -= np.square(step, out=step)
    # One NaN makes both numbers NaN, and the comparisons false.
    if variance.min() > LEAST_VARIANCE and variance.max() < np.inf:
        return Weights(mean, variance)
    good = (variance > LEAST_VARIANCE) & np.isfinite(variance) & np.isfinite(mean)
    return Weights(
        np.where(good, mean, weights.mean), np.where(good, variance, weights.variance)
    )
