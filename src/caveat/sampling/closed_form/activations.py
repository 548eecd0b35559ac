"""Moments of a non-linear function of a Gaussian variable z ~ N(m, v).

Each function returns the mean, the variance and the mean slope E s'(z), element by
element. Variances are sums of terms that do not cancel where the variable is nearly
certain, so that float32 is enough; where v = 0 the function itself is returned.

.. [Clark1961] C. E. Clark. The greatest of a finite set of random variables.
   Operations Research 9, 1961.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

_BLOCK = 1 << 15  # numbers at a time
_NODES = 12  # Gauss-Legendre; the variance of erf is then right to 1e-9
_GENTLE = 0.25  # variance below which tanh is integrated by Gauss-Hermite


class Transformed(NamedTuple):
    """Mean, variance and mean slope of a function of Gaussian variables."""

    mean: Tensor
    variance: Tensor
    slope: Tensor


def in_blocks(
    function: Callable[..., Transformed], mean: Tensor, variance: Tensor, *args: Any
) -> list[Transformed]:
    """``function(mean, variance, *args)`` of some rows at a time.

    What it needs in between then stays in a fast cache.
    """
    rows = max(1, _BLOCK * len(mean) // max(1, mean.numel()))
    blocks = zip(mean.split(rows), variance.split(rows), strict=True)
    return [function(*block, *args) for block in blocks]


def relu(mean: Tensor, variance: Tensor) -> Transformed:
    """max(z, 0) (ledger E90)."""
    top = _excess(mean, variance.sqrt())
    spread = torch.addcmul(top.product, variance, top.above)
    return Transformed(top.mean, spread.clamp_(min=0.0), top.above)


def leaky_relu(mean: Tensor, variance: Tensor, slope: float = 0.01) -> Transformed:
    """z above 0 and ``slope`` z below (ledger E91)."""
    # E91: a z + (1-a) relu(z), and Cov(z, relu(z)) = v Phi(m / sqrt v)
    top = relu(mean, variance)
    bend = 1.0 - slope
    spread = slope**2 * variance + bend**2 * top.variance
    spread = spread + 2.0 * slope * bend * variance * top.slope
    return Transformed(slope * mean + bend * top.mean, spread, slope + bend * top.slope)


def largest_of_two(
    mean: Tensor, variance: Tensor, other_mean: Tensor, other_variance: Tensor
) -> Transformed:
    """The larger of two independent Gaussian variables [Clark1961]_ (ledger E90).

    The slope is that by the first: the probability that it is the larger.
    """
    # E90: mean = m2 + E max(d, 0), d = z1 - z2;  P = Pr(d > 0)
    #      variance = v1 P + v2 (1 - P) + E max(d, 0) E min(d, 0)
    top = _excess(mean - other_mean, (variance + other_variance).sqrt())
    spread = torch.addcmul(top.product, variance, top.above)
    spread.addcmul_(other_variance, top.below)
    return Transformed(top.mean + other_mean, spread.clamp_(min=0.0), top.above)


class _Excess(NamedTuple):
    """Of d ~ N(gap, width²): Pr(d > 0), Pr(d < 0), E max(d, 0), and that times
    E min(d, 0)."""

    above: Tensor
    below: Tensor
    mean: Tensor
    product: Tensor


def _excess(gap: Tensor, width: Tensor) -> _Excess:
    score = gap / width.clamp(min=torch.finfo(gap.dtype).tiny)
    above = torch.erfc(score * -math.sqrt(0.5)).mul_(0.5)
    below = torch.erfc(score * math.sqrt(0.5)).mul_(0.5)
    # E90: E max(d, 0) = g P + w phi(g/w),  E min(d, 0) = g (1 - P) - w phi(g/w)
    bell = score.square_().mul_(-0.5).exp_().mul_(width)
    bell.mul_(1.0 / math.sqrt(2 * math.pi))
    mean = torch.addcmul(bell, gap, above)
    return _Excess(above, below, mean, (gap * below).sub_(bell).mul_(mean))


def erf(mean: Tensor, variance: Tensor) -> Transformed:
    """The error function (ledger E92)."""
    # E92: E erf = erf(m / sqrt(1+2v)),
    #      Var erf = (2/pi) int_0^t exp(-k / (1 + sin u)) du,
    #      k = 2 m² / (1+2v), t = arcsin(2v / (1+2v))
    wide = 1.0 + 2.0 * variance
    half = 0.5 * torch.asin(2.0 * variance / wide)
    ratio = 2.0 * mean.square() / wide
    total = torch.zeros_like(half)
    for node, weight in zip(*_legendre(), strict=True):
        sine = (half * (1.0 + node)).sin_().add_(1.0)
        total.add_((-ratio).div_(sine).exp_(), alpha=weight)
    slope = 2.0 / math.sqrt(math.pi) * (-0.5 * ratio).exp() / wide.sqrt()
    return Transformed(
        torch.erf(mean / wide.sqrt()), 2.0 / math.pi * half * total, slope
    )


def tanh(mean: Tensor, variance: Tensor) -> Transformed:
    """tanh, as a mixture of error functions where it is steep (ledger E93)."""
    gentle = variance < _GENTLE
    if bool(gentle.all()):
        return _gentle_tanh(mean, variance)
    if not bool(gentle.any()):
        return _steep_tanh(mean, variance)
    parts = zip(_gentle_tanh(mean, variance), _steep_tanh(mean, variance), strict=True)
    return Transformed(*(torch.where(gentle, *pair) for pair in parts))


def _steep_tanh(mean: Tensor, variance: Tensor) -> Transformed:
    # E93: tanh(z) = sum_i w_i erf(r_i z), and tanh² = 1 - tanh'
    centre, slope = torch.zeros_like(mean), torch.zeros_like(mean)
    for rate, share in _tanh_as_erfs():
        wide = (variance * (2.0 * rate**2)).add_(1.0).rsqrt_().mul_(rate)
        inner = mean * wide
        centre.add_(torch.erf(inner), alpha=share)
        bell = inner.square_().neg_().exp_().mul_(wide)
        slope.add_(bell, alpha=2.0 / math.sqrt(math.pi) * share)
    spread = (1.0 - slope - centre.square()).clamp_(min=0.0)
    return Transformed(centre, spread, slope)


def _gentle_tanh(mean: Tensor, variance: Tensor) -> Transformed:
    """By Gauss-Hermite: no terms cancel."""
    nodes, weights = _hermite()
    std = variance.clamp(max=_GENTLE).sqrt()
    values = [torch.add(mean, std, alpha=node).tanh_() for node in nodes]
    centre, spread, square = (torch.zeros_like(mean) for _ in range(3))
    for value, weight in zip(values, weights, strict=True):
        centre.add_(value, alpha=weight)
        square.addcmul_(value, value, value=weight)
    for value, weight in zip(values, weights, strict=True):
        spread.add_(value.sub_(centre).square_(), alpha=weight)
    return Transformed(centre, spread, 1.0 - square)


def sigmoid(mean: Tensor, variance: Tensor) -> Transformed:
    """The logistic function (1 + tanh(z/2)) / 2."""
    odd = tanh(0.5 * mean, 0.25 * variance)
    return Transformed(0.5 * (1.0 + odd.mean), 0.25 * odd.variance, 0.25 * odd.slope)


@lru_cache(maxsize=1)
def _legendre() -> tuple[list[float], list[float]]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes.tolist(), weights.tolist()


@lru_cache(maxsize=1)
def _hermite() -> tuple[list[float], list[float]]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(2 * _NODES)
    return nodes.tolist(), (weights / math.sqrt(2 * math.pi)).tolist()


@lru_cache(maxsize=1)
def _tanh_as_erfs() -> list[tuple[float, float]]:
    # Not at the top: scikit-learn comes with it.
    from caveat.theory.kernels.logistic import tanh_as_erfs

    mixture = tanh_as_erfs()
    return list(zip(mixture.rates, mixture.shares, strict=True))
