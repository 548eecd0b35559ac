"""Covariance functions of any smooth function: GELU, softplus, one's own, …"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from caveat.errors import InputTypeError
from caveat.theory.kernels import hermite
from caveat.theory.kernels.base import Nonlinearity, Slopes, ratio
from caveat.theory.kernels.covariances import Array, Covariances

_GOAL = 1e-13  # of the error, relative to sqrt(K(x, x) K(y, y))


@dataclass(frozen=True)
class Smooth(Nonlinearity):
    """Any smooth function of arrays, element by element.

    The expectation is summed by Mehler's formula (see ``hermite``, ledger E78), with
    as many terms as an error of 1e-13 needs, at most 2048; ``error_bound`` says how far
    off it is at most. For n and m points the cost is that of 1041 evaluations of the
    function at each point and of one multiplication and addition of (n, m) matrices per
    term. Functions with a kink converge slowly: use their closed forms.

    Attributes
    ----------
    function : callable
        Takes an array of any shape and returns one of the same shape.

    Examples
    --------
    >>> z = Covariances.of_inputs(
    ...     np.array([[1.0, 0.5]]), np.array([[-0.3, 0.8]]),
    ...     weight_variance=1.0, bias_variance=0.0,
    ... )
    >>> round(float(Smooth(np.tanh).product_mean(z)[0, 0]), 12)
    0.037431912186
    """

    function: Callable[[Array], Array]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputTypeError(
                f"function must be callable on arrays. Got {self.function!r}."
            )

    def __call__(self, z: Array) -> Array:
        return np.asarray(self.function(z), dtype=np.float64)

    def square_mean(self, variance: Array) -> Array:
        return np.square(self._at_nodes(variance)) @ hermite.weights()

    def square_mean_slope(self, variance: Array) -> Array:
        """E sigma(z)² (g² - 1) / (2 q), by parts."""
        weights = hermite.weights() * (np.square(hermite.nodes()) - 1)
        return ratio(np.square(self._at_nodes(variance)) @ weights, 2 * variance)

    def product_mean(self, q: Covariances) -> Array:
        left, right = self._coefficients(q)
        # E78: sum_n c_n(q_xx) c_n(q_yy) rho^n
        return hermite.power_sum(left, right, q.correlation)

    def slopes(self, q: Covariances) -> Slopes:
        left, right = self._coefficients(q)
        first = np.sqrt(np.arange(1, left.shape[1]))
        second = first[:-1] * first[1:]

        def total(a: Array, b: Array) -> Array:
            n_terms = min(a.shape[1], b.shape[1])
            return hermite.power_sum(a[:, :n_terms], b[:, :n_terms], q.correlation)

        # E82: d/dq_xy = E sigma' sigma', d/dq_xx = E sigma'' sigma / 2
        bend_x = total(second * left[:, 2:], right)
        bend_y = total(left, second * right[:, 2:])
        along = total(first * left[:, 1:], first * right[:, 1:])
        return Slopes(
            ratio(bend_x, 2 * q.xx[:, None]),
            ratio(bend_y, 2 * q.yy[None, :]),
            ratio(along, q.norm),
        )

    def _at_nodes(self, variance: Array) -> Array:
        """sigma(sqrt(q) g), shape (points, nodes)."""
        return self(np.multiply.outer(np.sqrt(variance), hermite.nodes()))

    def error_bound(self, q: Covariances) -> float:
        """What the series leaves out, and the errors of its coefficients.

        Errors are told by rules whose nodes lie between, so they are bounds unless the
        function has features that are narrower than 1/160 of a standard deviation.
        """
        variance = np.concatenate([q.xx, q.yy])
        values = self._at_nodes(variance)
        squares = np.square(values) @ hermite.weights()
        series = _series(values, squares)
        off, off_square = np.zeros_like(series), np.zeros_like(squares)
        for rule in hermite.shifted(series.shape[1]):
            others = self(np.multiply.outer(np.sqrt(variance), rule.nodes))
            # a kink makes errors that are at most twice such a difference
            off = np.maximum(off, 2 * np.abs(others @ rule.basis - series))
            again = np.square(others) @ rule.basis[:, 0]
            off_square = np.maximum(off_square, 2 * np.abs(again - squares))
        size = np.abs(series) + off
        lacking = np.abs(squares - np.square(series).sum(1)) + off_square
        lacking += (off * (size + np.abs(series))).sum(1)
        # what any pair can be off by: sum_n (|c_n| + e_n)(|c'_n| + e'_n) - |c_n c'_n|
        scale = np.sqrt(squares)[:, None]
        largest, error = _most(ratio(size, scale)), _most(ratio(off, scale))
        return _worst(lacking, squares) + 2 * float(largest @ error)

    def _coefficients(self, q: Covariances) -> tuple[Array, Array]:
        """c_n at x and y, shape (points, terms)."""
        values = self._at_nodes(np.concatenate([q.xx, q.yy]))
        found = _series(values, np.square(values) @ hermite.weights())
        return found[: len(q.xx)], found[len(q.xx) :]


def _series(values: Array, squares: Array) -> Array:
    """Coefficients of functions given at the nodes: as many as E sigma² needs."""
    n_terms, error = hermite.FEWEST // 2, math.inf
    while error > _GOAL and n_terms < hermite.MOST:
        n_terms *= 2
        found = values @ hermite.basis(n_terms)
        error = _worst(squares - np.square(found).sum(1), squares)
    return found


def _most(values: Array) -> Array:
    """The largest of all points, for each term."""
    found: Array = values.max(0, initial=0.0)
    return found


def _worst(error: Array, scale: Array) -> float:
    return float(np.abs(ratio(error, scale)).max(initial=0.0))
