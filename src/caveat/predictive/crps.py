"""The continuous ranked probability score: an absolute error that knows about spread.

CRPS(F, y) = E|X - y| - E|X - X'| / 2, with X and X' independent and distributed as F.

.. [Gneiting2007] T. Gneiting, A. E. Raftery. Strictly proper scoring rules, prediction
   and estimation. Journal of the American Statistical Association 102, 2007.
.. [Grimit2006] E. P. Grimit, T. Gneiting, V. J. Berrocal, N. A. Johnson. The continuous
   ranked probability score for circular variables and its application to mesoscale
   forecast ensemble verification. QJRMS 132, 2006.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

_TAIL = 9.0  # standard deviations; a Gaussian has less than 1e-18 beyond
_STEPS = 2.0  # points of the integral per standard deviation of the noise
_AT_ONCE = 2**22  # numbers held at once
_ACCURACY = 1e-6  # of the integrals that have no closed form,
_ALIKE = 100.0  # which are taken together while they differ by no more than this
_ROUNDS = 6
_CAUCHY = 1e-7  # degrees of freedom so near to 1 are taken as 1: 0/0 in the formula
_LARGE = 30.0  # from where three terms of Stirling's series are exact to rounding


def mixture_crps(draws: Tensor, precision: Tensor, y: Tensor) -> Tensor:
    """Of mixtures of T Gaussians: by pairs, or by an integral if that is shorter.

    Parameters
    ----------
    draws, precision : Tensor, shape (draws, batch, *event)
        Centres of the components, and their inverse variances.
    y : Tensor, shape (batch, *event)
        What was observed.

    Returns
    -------
    Tensor of float64, shape (batch, *event)
    """
    centres = draws.cpu().double().reshape(len(draws), -1).T
    widths = precision.cpu().double().rsqrt().reshape(len(draws), -1).T
    found = _of_rows(centres, widths, y.cpu().double().reshape(-1))
    return found.reshape(y.shape).to(y.device)


def student_crps(scores: Tensor, cdf: Tensor, density: Tensor, df: Tensor) -> Tensor:
    """Of a standard Student-t at ``scores``, where its cdf and density are these.

    It is the integral of (F - [x >= y])², which is finite above half a degree of
    freedom, though E|X - y| is only above one; below it is infinite.
    """
    half = math.lgamma(0.5)
    top = half - log_gamma_step(df - 0.5)
    bottom = half - log_gamma_step(0.5 * df)
    # E160: z (2 F(z) - 1) + 2 f(z) (v + z²)/(v - 1)
    #       - 2 sqrt(v)/(v - 1) B(1/2, v - 1/2) / B(1/2, v/2)²
    spread = 2.0 * df.sqrt() * (top - 2.0 * bottom).exp()
    bell = 2.0 * density * (df + scores.square())
    found = scores * (2.0 * cdf - 1.0) + (bell - spread) / (df - 1.0)
    # E160, at v = 1: (2/π) (z arctan z - log(1 + z²)/2 + log 2)
    cauchy = scores * scores.atan() - 0.5 * scores.square().log1p() + math.log(2.0)
    found = torch.where((df - 1.0).abs() < _CAUCHY, cauchy * 2.0 / math.pi, found)
    return torch.where(df > 0.5, found, torch.inf)


def log_gamma_step(x: Tensor) -> Tensor:
    """log Γ(x + 1/2) - log Γ(x) for x > 0, without the rounding of the difference."""
    plain = torch.lgamma(x + 0.5) - torch.lgamma(x)
    inverse = 1.0 / x.clamp(min=_LARGE)
    tail = 1.0 / 192 + inverse.square() * (-1.0 / 640 + inverse.square() * 17 / 14336)
    series = 0.5 * x.log() - 0.125 * inverse + inverse**3 * tail
    return torch.where(x > _LARGE, series, plain)


def integrated_crps(
    cdf: Callable[[Tensor], Tensor], y: Tensor, scale: Tensor
) -> Tensor:
    """By integration on both sides of y, where the integrand is smooth.

    Parameters
    ----------
    cdf : callable
        From values of the shape of ``y`` to their probabilities.
    y : Tensor
        What was observed.
    scale : Tensor, of the shape of ``y``
        About as wide as the distribution.

    Returns
    -------
    Tensor of float64, of the shape of ``y``
    """
    y, scale = y.double(), scale.double()
    found, size = y, scale
    for _ in range(_ROUNDS if y.numel() else 0):
        ratios = _integrals(cdf, y, scale, size)
        found = ratios * size
        # A row is right to _ACCURACY times the largest ratio over its own.
        alike = ~(ratios * _ALIKE < ratios.max())
        if bool(alike.all()):
            break
        size = torch.where(alike, found, size / _ALIKE)
    return found


def _integrals(
    cdf: Callable[[Tensor], Tensor], y: Tensor, scale: Tensor, size: Tensor
) -> Tensor:
    """CRPS of each row over its size, to a part of the largest of them."""
    from scipy.integrate import quad_vec

    def squares(step: float) -> np.ndarray:
        left, right = cdf(y - step * scale), 1.0 - cdf(y + step * scale)
        return ((left.square() + right.square()) * (scale / size)).numpy(force=True)

    # E107: CRPS = int_{-inf}^y F² dx + int_y^inf (1 - F)² dx
    found, _ = quad_vec(
        squares, 0.0, math.inf, epsabs=0.0, epsrel=_ACCURACY, norm="max"
    )
    return torch.from_numpy(np.asarray(found)).to(y.device)


def _of_rows(centres: Tensor, widths: Tensor, y: Tensor) -> Tensor:
    """Of (rows, draws) components; shape (rows,)."""
    if len(y) == 0:
        return torch.zeros_like(y)
    n_points, n_draws = _n_points(centres, widths), centres.shape[1]
    spread = _spread_by_pairs
    if n_points < n_draws:
        spread = partial(_spread_by_integral, n_points=n_points)
    parts = _parts(len(y), n_draws * min(n_points, n_draws))
    halves = [spread(centres[p], widths[p]) for p in parts]
    return _mean_distance(centres, widths, y) - torch.cat(halves)


def _spread_by_pairs(centres: Tensor, widths: Tensor) -> Tensor:
    """E|X - X'| / 2 of the mixture of each row."""
    # E105: (1/T) sum_t A(y - f_t, s_t²) - (1/2T²) sum_tu A(f_t - f_u, s_t² + s_u²),
    #       A(m, s²) = E|N(m, s²)| = m (2 Phi(m/s) - 1) + 2 s phi(m/s)
    gaps = centres.unsqueeze(1) - centres.unsqueeze(2)
    both = (widths.square().unsqueeze(1) + widths.square().unsqueeze(2)).sqrt()
    return 0.5 * _mean_size(gaps, both).mean((1, 2))


def _spread_by_integral(centres: Tensor, widths: Tensor, n_points: int) -> Tensor:
    """As ``_spread_by_pairs``, in T times ``n_points`` steps instead of T times T."""
    low = (centres - _TAIL * widths).amin(1)
    high = (centres + _TAIL * widths).amax(1)
    step = (high - low) / (n_points - 1)
    total = torch.zeros_like(step)
    for point in range(n_points):
        x = (low + point * step).unsqueeze(1)
        below = torch.special.ndtr((x - centres) / widths).mean(1)
        # E106: E|X - X'| / 2 = int F (1 - F) dx; the trapezoid rule is exact to
        #       rounding at half a standard deviation of the narrowest component, as F
        #       is smooth
        total += below * (1.0 - below)
    return total * step


def _mean_distance(centres: Tensor, widths: Tensor, y: Tensor) -> Tensor:
    """E|X - y| of the mixture of each row."""
    return _mean_size(y.unsqueeze(1) - centres, widths).mean(1)


def _mean_size(means: Tensor, widths: Tensor) -> Tensor:
    """A(m, s²) = E|N(m, s²)|."""
    scores = means / widths
    bell = (-0.5 * scores.square()).exp() / math.sqrt(2.0 * math.pi)
    return means * (2.0 * torch.special.ndtr(scores) - 1.0) + 2.0 * widths * bell


def _n_points(centres: Tensor, widths: Tensor) -> int:
    low, high = centres - _TAIL * widths, centres + _TAIL * widths
    reach = high.amax(1) - low.amin(1)
    return int((_STEPS * reach / widths.amin(1)).ceil().max()) + 1


def _parts(n_rows: int, per_row: int) -> Iterator[slice]:
    size = max(_AT_ONCE // per_row, 1)
    return (slice(start, start + size) for start in range(0, n_rows, size))
