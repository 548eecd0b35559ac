"""Covariances of deep networks of infinite width, layer by layer, with gradients.

    q¹(x, y) = s_b² + s_w² x'y,      q^(k+1)(x, y) = s_b² + s_w² V(q^k)

with V(q) = E sigma(z_x) sigma(z_y) and weights of variance s_w² / fan-in. Units that
enter a layer and are kept with probability p, times s (1, or 1/p if inverted), change
V(xx) into s² p V(xx), and V(xy) into s² p² V(xy) if x and y have masks of their own,
or s² p V(xy) if they share one.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from caveat import _validation as validation
from caveat.errors import CaveatWarning, ParameterError
from caveat.theory.kernels.base import Nonlinearity, norm_of
from caveat.theory.kernels.covariances import (
    Array,
    Covariances,
    angle_from_shortfall,
    as_pair,
    as_points,
)


@dataclass(frozen=True)
class Layer:
    """Weights, biases and the non-linearity that follows them.

    Attributes
    ----------
    nonlinearity : Nonlinearity
    weight_variance : float
        s_w², times the number of units that enter; in the first layer without it.
    bias_variance : float
        s_b².
    own : float
        E z² of the masks on the units that enter, times their scale squared.
    cross : float
        The same of E z_x z_y for two points.
    """

    nonlinearity: Nonlinearity
    weight_variance: float
    bias_variance: float
    own: float = 1.0
    cross: float = 1.0

    def __post_init__(self) -> None:
        validation.positive("weight_variance", self.weight_variance)
        _not_negative("bias_variance", self.bias_variance)


_NOTABLE = 1e-8  # error from which on there is a warning

_ROUGH = """A covariance of {sigma} is right to {error:.0e} only.
Its pre-activations have variances up to {variance:.3g}, for which it is too steep.
Scale the inputs, take a smaller weight variance (a larger length-scale), or a closed
form that is close, such as "tanh" or "relu"."""


class Tangents(NamedTuple):
    """Derivatives of ``Covariances`` by P parameters, which are the first axis."""

    xx: Array
    yy: Array
    xy: Array


class Seeds(NamedTuple):
    """d log s_w² and d log s_b² of each layer by P parameters, shapes (layers, P)."""

    weights: Array
    biases: Array


def network_variance(x: ArrayLike, layers: Sequence[Layer]) -> Array:
    """K(x, x) of a network at each point.

    Parameters
    ----------
    x : array_like, shape (n, inputs)
        Points.
    layers : sequence of Layer
        At least one.

    Returns
    -------
    array, shape (n,)

    Examples
    --------
    >>> from caveat.theory.kernels import LeakyRelu
    >>> network_variance([[1.0, 0.5]], [Layer(LeakyRelu(), 1.0, 0.0)])
    array([0.625])
    """
    first, *others = _at_least_one(layers)
    squares = np.square(as_points("x", x)).sum(1)
    xx = first.weight_variance * squares + first.bias_variance
    value = first.nonlinearity.square_mean(xx)
    for layer in others:
        xx = layer.bias_variance + layer.weight_variance * layer.own * value
        value = layer.nonlinearity.square_mean(xx)
    return value


def network_covariance(x: ArrayLike, y: ArrayLike, layers: Sequence[Layer]) -> Array:
    """K(x, y) of a network at each pair of points, in two different passes.

    Parameters
    ----------
    x, y : array_like, shapes (n, inputs) and (m, inputs)
        Points.
    layers : sequence of Layer
        At least one.

    Returns
    -------
    array, shape (n, m)

    Examples
    --------
    >>> from caveat.theory.kernels import LeakyRelu
    >>> layers = [Layer(LeakyRelu(), weight_variance=1.0, bias_variance=0.25)]
    >>> network_covariance([[1.0, 0.5]], [[-0.3, 0.8]], layers)
    array([[0.28856261]])
    """
    left, right = as_pair(x, y)
    q = _enter(left, right, _at_least_one(layers)[0])
    for before, layer in pairwise(layers):
        _tell_error(before.nonlinearity, q)
        q = _advance(q, before.nonlinearity, layer)
    _tell_error(layers[-1].nonlinearity, q)
    return layers[-1].nonlinearity.product_mean(q)


def network_gram(x: ArrayLike, layers: Sequence[Layer]) -> Array:
    """K(x, x') of a network at all pairs of points, with variances on the diagonal.

    Parameters
    ----------
    x : array_like, shape (n, inputs)
        Points, each in a pass of its own if masks are not shared.
    layers : sequence of Layer
        At least one.

    Returns
    -------
    array, shape (n, n)

    Examples
    --------
    >>> from caveat.theory.kernels import Identity
    >>> network_gram([[1.0], [2.0]], [Layer(Identity(), 1.0, 0.0)])
    array([[1., 2.],
           [2., 4.]])
    """
    matrix = network_covariance(x, x, layers).copy()
    np.fill_diagonal(matrix, network_variance(x, layers))
    return matrix


def gram_with_gradient(
    x: Array, layers: Sequence[Layer], seeds: Seeds
) -> tuple[Array, Array]:
    """``network_gram``, and its derivatives by P parameters, shape (n, n, P).

    For searches, which pass through extremes, so it does not warn of errors.
    """
    q = _enter(x, x, layers[0])
    change = _enter_tangents(q, layers[0], _row(seeds, 0))
    for number, layer in enumerate(layers[1:], 1):
        sigma = layers[number - 1].nonlinearity
        change = _advance_tangents(q, change, sigma, layer, _row(seeds, number))
        q = _advance(q, sigma, layer)
    last = layers[-1].nonlinearity
    matrix, gradient = last.product_mean(q).copy(), _through(last, q, change)
    diagonal = np.arange(len(x))
    matrix[diagonal, diagonal] = last.square_mean(q.xx)
    gradient[:, diagonal, diagonal] = last.square_mean_slope(q.xx) * change.xx
    return matrix, np.moveaxis(gradient, 0, -1)


def _enter(x: Array, y: Array, layer: Layer) -> Covariances:
    return Covariances.of_inputs(
        x,
        y,
        weight_variance=layer.weight_variance,
        bias_variance=layer.bias_variance,
    )


def _advance(q: Covariances, sigma: Nonlinearity, layer: Layer) -> Covariances:
    """From the pre-activations of one layer to those of the next."""
    bias = layer.bias_variance
    product, shortfall = sigma.moments(q)
    square_x, square_y = sigma.square_mean(q.xx), sigma.square_mean(q.yy)
    # E80: V(xx) times s² p; V(xy) times s² p² for two masks, s² p for a shared one
    own, cross = (layer.weight_variance * e for e in (layer.own, layer.cross))
    u, v = own * square_x, own * square_y
    # E79: q' = s_b² + s_w² V(q)
    xx, yy, xy = bias + u, bias + v, bias + cross * product
    lack = cross * shortfall + (own - cross) * norm_of(square_x, square_y)
    norm, inner = norm_of(xx, yy), norm_of(u, v)
    gap = np.sqrt(u)[:, None] - np.sqrt(v)
    if bias > 0:
        lack = lack + bias * np.square(gap) / (norm + bias + inner)
    return Covariances(xx, yy, xy, angle_from_shortfall(norm, lack))


def _row(seeds: Seeds, number: int) -> tuple[Array, Array]:
    return seeds.weights[number], seeds.biases[number]


def _enter_tangents(
    q: Covariances, layer: Layer, seed: tuple[Array, Array]
) -> Tangents:
    bias = layer.bias_variance
    return Tangents(*(_affine(part - bias, bias, seed) for part in (q.xx, q.yy, q.xy)))


def _advance_tangents(
    q: Covariances,
    change: Tangents,
    sigma: Nonlinearity,
    layer: Layer,
    seed: tuple[Array, Array],
) -> Tangents:
    bias = layer.bias_variance
    own, cross = (layer.weight_variance * e for e in (layer.own, layer.cross))

    def variance(part: Array, part_change: Array) -> Array:
        direct = _affine(own * sigma.square_mean(part), bias, seed)
        return direct + own * sigma.square_mean_slope(part) * part_change

    pairs = _affine(cross * sigma.product_mean(q), bias, seed)
    return Tangents(
        variance(q.xx, change.xx),
        variance(q.yy, change.yy),
        pairs + cross * _through(sigma, q, change),
    )


def _affine(weighted: Array, bias: float, seed: tuple[Array, Array]) -> Array:
    """Derivative of s_b² + s_w² V by the layer's own variances, shape (P, …)."""
    by_weights, by_biases = (s.reshape(-1, *[1] * weighted.ndim) for s in seed)
    return by_weights * weighted + by_biases * bias


def _through(sigma: Nonlinearity, q: Covariances, change: Tangents) -> Array:
    """Derivative of E sigma sigma by the chain rule, shape (P, n, m)."""
    slopes = sigma.slopes(q)
    return (
        slopes.xx * change.xx[:, :, None]
        + slopes.yy * change.yy[:, None, :]
        + slopes.xy * change.xy
    )


def _tell_error(sigma: Nonlinearity, q: Covariances) -> None:
    error = sigma.error_bound(q)
    if error > _NOTABLE:
        variance = max(q.xx.max(), q.yy.max())
        text = _ROUGH.format(sigma=sigma, error=error, variance=variance)
        warnings.warn(text, CaveatWarning, stacklevel=3)


def _at_least_one(layers: Sequence[Layer]) -> Sequence[Layer]:
    if not layers:
        raise ParameterError("A network must have at least one layer. Got none.")
    return layers


def _not_negative(name: str, value: Any) -> float:
    if isinstance(value, int | float) and value == 0:
        return 0.0
    return validation.positive(name, value)
