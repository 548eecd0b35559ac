"""Hermite coefficients of functions of a Gaussian, by the plain trapezoid rule.

With h_n the Hermite polynomials normalised under N(0, 1), g ~ N(0, 1) and

    c_n(q) = E sigma(sqrt(q) g) h_n(g)

Mehler's formula turns a two-dimensional expectation into one-dimensional ones:

    E sigma(z_x) sigma(z_y) = sum_n c_n(q_xx) c_n(q_yy) rho^n.

What a sum of N terms leaves out is at most sqrt(r_x r_y), r = E sigma² - sum c_n²; how
well the c_n are known themselves is told by rules with other nodes. The trapezoid rule
on equal steps converges exponentially in 1/step for analytic functions that decay,
which Gauss-Hermite does not.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from caveat.theory.kernels.covariances import Array

_REACH = 13.0  # where the weights of the coefficients, exp(-g²/4), are 4e-19
_STEP = 0.025  # resolves h_n up to n = 2048
FEWEST, MOST = 64, 2048  # terms of a series
_BLOCK = 1 << 15  # pairs summed at a time: they stay in the cache of the processor


@lru_cache(maxsize=1)
def nodes() -> Array:
    """Equally spaced nodes, shape (nodes,); read-only."""
    return _frozen(np.arange(-_REACH, _REACH + _STEP / 2, _STEP))


@lru_cache(maxsize=1)
def weights() -> Array:
    """Of the expectation under N(0, 1), one per node; read-only."""
    return _frozen(_weights(nodes()))


@lru_cache(maxsize=6)
def basis(n_terms: int) -> Array:
    """Weights times h_0 … h_(n_terms-1) at the nodes, shape (nodes, n_terms)."""
    return _frozen(_weighted(nodes(), n_terms))


class Shifted(NamedTuple):
    """The same rule with its nodes elsewhere between those of the first."""

    nodes: Array
    basis: Array  # shape: (nodes, n_terms)


def shifted(n_terms: int) -> Iterator[Shifted]:
    """Rules whose nodes are moved by a quarter, a half and three quarters of a step.

    Where they agree with the first rule, a step four times as small would, too.
    """
    for share in (0.25, 0.5, 0.75):
        moved = nodes() + share * _STEP
        yield Shifted(moved, _weighted(moved, n_terms))


def _weighted(points: Array, n_terms: int) -> Array:
    """Weights times h_0 … h_(n_terms-1) at some points, shape (points, n_terms)."""
    columns = np.empty((n_terms, len(points)))
    columns[0] = _weights(points)
    columns[1] = columns[0] * points
    for n in range(2, n_terms):
        step = points * columns[n - 1] - np.sqrt(n - 1) * columns[n - 2]
        columns[n] = step / np.sqrt(n)
    return columns.T


def _weights(points: Array) -> Array:
    density = np.exp(-0.5 * np.square(points)) / np.sqrt(2 * np.pi)
    found: Array = _STEP * density
    return found


def power_sum(left: Array, right: Array, correlation: Array) -> Array:
    """sum_k left[i, k] right[j, k] correlation[i, j]^k, shape (n, m).

    By Horner's rule in blocks of rows, so that the memory is that of the result.
    """
    largest = np.abs(left).max(0, initial=0) * np.abs(right).max(0, initial=0)
    total = np.zeros_like(correlation)
    rows = max(1, _BLOCK // max(1, correlation.shape[1]))
    for start in range(0, len(left), rows):
        part = slice(start, start + rows)
        total[part] = _horner(left[part], right, correlation[part], largest)
    return total


def _horner(left: Array, right: Array, rho: Array, largest: Array) -> Array:
    """``power_sum`` of a block, without the terms that are 0 or rounding errors."""
    kept = np.flatnonzero(largest > 1e-18 * largest.max(initial=0))
    total, power = np.zeros_like(rho), 0
    for k in kept[::-1]:
        for _ in range(power - k if power else 0):
            total *= rho
        total += np.multiply.outer(left[:, k], right[:, k])
        power = k
    return total * rho**power


def _frozen(values: Array) -> Array:
    values.flags.writeable = False
    return values
