"""The T-component Gaussian mixture that T draws and a precision stand for.

The predictive density is p(y|x) = (1/T) sum_t N(y; f_t(x), 1/tau), which is not the
Gaussian of the same mean and variance. Both functions read the draws in blocks.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from caveat.predictive.moments import BLOCK, blocks, flat_event, wide_dtype

_WIDTH = 1e-6  # a quantile is known to this part of the standard deviation
_NEWTON_ROUNDS = 8  # smooth mixtures are done by then; steep ones are bisected
_ROUNDS = 80


def log_density(draws: Tensor, precision: Tensor, y: Tensor) -> Tensor:
    """Log density of ``y`` (batch, *event), jointly over the event; shape (batch,)."""
    wide = wide_dtype(draws.device)
    y, tau = (flat_event(a.to(wide), 1) for a in (y, precision))
    total = torch.full_like(y[:, 0], -torch.inf)
    for block in blocks(draws):
        gap = flat_event(block.to(wide), 2) - y
        exponent = gap.square_().mul_(tau).sum(-1).mul_(-0.5)
        total = torch.logaddexp(total, exponent.logsumexp(0))
    # E3: log p(y|x) = logsumexp_t( -1/2 sum_d tau_d (y_d - f_td)^2 ) - log T
    #                  - D/2 log 2 pi + 1/2 sum_d log tau_d
    constant = math.log(len(draws)) + 0.5 * y.shape[1] * math.log(2 * math.pi)
    return total - constant + 0.5 * tau.log().sum(-1)  # shape: (batch,)


def quantiles(draws: Tensor, precision: Tensor, levels: Sequence[float]) -> Tensor:
    """Quantiles of each output on its own; shape (levels, batch, *event)."""
    wide = wide_dtype(draws.device)
    noise_std = precision.to(wide).rsqrt().reshape(-1)
    flat = flat_event(draws, 1)
    width = max(BLOCK // len(draws), 1)
    answers = []
    columns = zip(
        torch.split(flat, width, 1), torch.split(noise_std, width), strict=True
    )
    for values, noise in columns:
        components = values.to(wide)
        centre = components.mean(0)
        components = components - centre
        roots = [centre + _solve(components, noise, level) for level in levels]
        answers.append(torch.stack(roots))
    return torch.cat(answers, 1).reshape(len(levels), *draws.shape[1:])


def _solve(components: Tensor, noise_std: Tensor, level: float) -> Tensor:
    """Root of cdf(x) = level per column: Newton's method inside a bracket."""
    # E6: F(x) = (1/T) sum_t Phi((x - f_t) / s) = q, and, as all T components share s,
    #     min_t f_t + s Phi^-1(q) <= x <= max_t f_t + s Phi^-1(q)
    score = _normal_quantile(level)
    low = components.amin(0) + score * noise_std
    high = components.amax(0) + score * noise_std
    std = (components.square().mean(0) + noise_std.square()).sqrt()
    x = (score * std).clamp(low, high)
    for turn in range(_ROUNDS):
        if bool((high - low <= _WIDTH * std).all()):
            break
        cdf, density = _cdf_and_density(components, noise_std, x)
        below = cdf < level
        low, high = torch.where(below, x, low), torch.where(below, high, x)
        # A step goes at least so far that the root changes sides and closes the gap.
        least = torch.where(below, 0.5 * _WIDTH, -0.5 * _WIDTH) * std
        step = (level - cdf) / density
        guess = x + torch.where(step.abs() < least.abs(), least, step)
        trust = (guess > low) & (guess < high) & (turn < _NEWTON_ROUNDS)
        x = torch.where(trust, guess, 0.5 * (low + high))
    return 0.5 * (low + high)


def _cdf_and_density(
    components: Tensor, noise_std: Tensor, x: Tensor
) -> tuple[Tensor, Tensor]:
    scores = (x - components) / noise_std
    cdf = torch.erfc(scores * -math.sqrt(0.5)).mean(0).mul_(0.5)  # ndtr, but faster
    bell = scores.square_().mul_(-0.5).exp_().mean(0)
    return cdf, bell / (noise_std * math.sqrt(2 * math.pi))


def _normal_quantile(level: float) -> float:
    return float(torch.special.ndtri(torch.tensor(level, dtype=torch.float64)))
