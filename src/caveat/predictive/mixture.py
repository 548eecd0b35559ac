"""The T-component Gaussian mixture that T draws and their precisions stand for.

The predictive density is p(y|x) = (1/T) sum_t N(y; f_t(x), 1/tau), which is not the
Gaussian of the same mean and variance. The precision is one for all draws, of the shape
(batch, *event), or each draw has its own tau_t(x), of the shape (draws, batch, *event).
The draws are read in blocks.
"""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from caveat._random import random_uniform, stream_key
from caveat.predictive.moments import BLOCK, blocks, flat_event, wide_dtype

_WIDTH = 1e-6  # a quantile is known to this part of the standard deviation
_NEWTON_ROUNDS = 8  # smooth mixtures are done by then; steep ones are bisected
_ROUNDS = 80


def log_density(draws: Tensor, precision: Tensor, y: Tensor) -> Tensor:
    """Log density of ``y`` (batch, *event), jointly over the event; shape (batch,)."""
    wide = wide_dtype(draws.device)
    y = flat_event(y.to(wide), 1)
    total = torch.full_like(y[:, 0], -torch.inf)
    for block, own in _paired_blocks(draws, precision):
        tau = flat_event(own.to(wide), 2)
        gap = flat_event(block.to(wide), 2) - y
        exponent = gap.square_().mul_(tau).sum(-1).mul_(-0.5)
        exponent = exponent + 0.5 * tau.log().sum(-1)
        total = torch.logaddexp(total, exponent.logsumexp(0))
    # E3: log p(y|x) = logsumexp_t( 1/2 sum_d log tau_td
    #                               - 1/2 sum_d tau_td (y_d - f_td)^2 )
    #                  - log T - D/2 log 2 pi
    constant = math.log(len(draws)) + 0.5 * y.shape[1] * math.log(2 * math.pi)
    return total - constant  # shape: (batch,)


def cdf(draws: Tensor, precision: Tensor, y: Tensor) -> Tensor:
    """Cdf of each output on its own at ``y`` (batch, *event), in the widest type."""
    wide = wide_dtype(draws.device)
    y = y.to(wide)
    total = torch.zeros_like(y)
    for block, own in _paired_blocks(draws, precision):
        # E104: F(y) = (1/T) sum_t Phi((y - f_t) sqrt(tau_t))
        scores = (y - block.to(wide)) * own.to(wide).sqrt()
        total += torch.special.ndtr(scores).sum(0)
    return total / len(draws)


def observations(draws: Tensor, precision: Tensor, number: int, seed: int) -> Tensor:
    """Observations of each row, shape (number, batch, *event); a draw and noise."""
    rows = torch.arange(draws.shape[1], device=draws.device)
    key = stream_key(seed, "observed draw")
    uniforms = random_uniform(key, range(number), (len(rows),)).to(draws.device)
    which = (uniforms * len(draws)).long()  # shape: (number, batch)
    own = _with_draws_axis(precision, draws).expand(draws.shape)[which, rows]
    noise = standard_normal(number, draws.shape[1:], seed).to(draws.device)
    return draws[which, rows] + noise * own.rsqrt()


def standard_normal(number: int, shape: Sequence[int], seed: int) -> Tensor:
    """Float64 numbers from N(0, 1), shape (number, *shape)."""
    key = stream_key(seed, "observation noise")
    return torch.special.ndtri(random_uniform(key, range(number), shape))


def mean_noise_variance(precision: Tensor) -> Tensor:
    """Average over draws of 1/tau_t (draws, batch, *event); shape (batch, *event)."""
    # E85: noise variance = (1/T) sum_t 1/tau_t
    wide = wide_dtype(precision.device)
    total = torch.zeros_like(precision[0], dtype=wide)
    for block in blocks(precision):
        total += block.to(wide).reciprocal().sum(0)
    return total / len(precision)


def quantiles(draws: Tensor, precision: Tensor, levels: Sequence[float]) -> Tensor:
    """Quantiles of each output on its own; shape (levels, batch, *event)."""
    wide = wide_dtype(draws.device)
    flat = flat_event(draws, 1)
    tau = flat_event(_with_draws_axis(precision, draws), 1)  # shape: (T or 1, outputs)
    width = max(BLOCK // len(draws), 1)
    answers = []
    columns = zip(torch.split(flat, width, 1), torch.split(tau, width, 1), strict=True)
    for values, own in columns:
        components, noise_std = values.to(wide), own.to(wide).rsqrt()
        centre = components.mean(0)
        components = components - centre
        roots = [centre + _solve(components, noise_std, level) for level in levels]
        answers.append(torch.stack(roots))
    return torch.cat(answers, 1).reshape(len(levels), *draws.shape[1:])


def _paired_blocks(draws: Tensor, precision: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Blocks of draws with their precisions, both (draws or 1, batch, *event)."""
    tau = _with_draws_axis(precision, draws)
    start = 0
    for block in blocks(draws):
        stop = start + len(block)
        yield block, tau if len(tau) == 1 else tau[start:stop]
        start = stop


def _with_draws_axis(precision: Tensor, draws: Tensor) -> Tensor:
    return precision if precision.ndim == draws.ndim else precision.unsqueeze(0)


def _solve(components: Tensor, noise_std: Tensor, level: float) -> Tensor:
    """Root of cdf(x) = level per column: Newton's method inside a bracket."""
    # E6: F(x) = (1/T) sum_t Phi((x - f_t) / s_t) = q, and, as at the least (largest)
    #     of the components' quantiles none (each) of them exceeds q,
    #     min_t f_t + s_t Phi^-1(q) <= x <= max_t f_t + s_t Phi^-1(q)
    score = _normal_quantile(level)
    low, high = torch.aminmax(components + score * noise_std, dim=0)
    std = (components.square().mean(0) + noise_std.square().mean(0)).sqrt()
    x = (score * std).clamp(low, high)
    for turn in range(_ROUNDS):
        wide = high - low > _WIDTH * std  # a row that is done waits for no other
        if not bool(wide.any()):
            break
        cdf, density = _cdf_and_density(components, noise_std, x)
        below = cdf < level
        low = torch.where(wide & below, x, low)
        high = torch.where(wide & ~below, x, high)
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
    bell = scores.square_().mul_(-0.5).exp_().div_(noise_std).mean(0)
    return cdf, bell / math.sqrt(2 * math.pi)


def _normal_quantile(level: float) -> float:
    return float(torch.special.ndtri(torch.tensor(level, dtype=torch.float64)))
