"""KL terms of the noise families, differentiable, in the stored weights W = p M.

The prior of each weight is N(0, 1/l²). These functions check nothing and have no
branches on values, so that they can be mapped over many networks at once
(``torch.func.vmap``). ``caveat.theory`` has the same formulas, checked, one row of
weights at a time.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import softplus

from caveat import _validation as validation

Lengthscale: TypeAlias = float | Tensor

_FAR = 100.0  # gap in standard deviations at which components do not overlap
_LARGEST_LOGIT = 80.0  # whose exponential is still a float
_TAIL, _NODES = 10.0, 401  # of the trapezoid rule; its error is below rounding


def checked_lengthscale(value: Lengthscale) -> Lengthscale:
    """A number above 0; a tensor is taken as it is, so that it may be mapped over."""
    if isinstance(value, Tensor):
        return value
    return validation.positive("lengthscale", value)


def dropped(weight: Tensor, keep_prob: float | Tensor, length: Lengthscale) -> Tensor:
    """KL of weights of which the share p is kept, up to a constant (s -> 0)."""
    # E30: (p l²/2) |M|² = (l²/(2p)) |W|²
    return 0.5 * length**2 / keep_prob * weight.square().sum()


def gaussian(mean: Tensor, log_sd: Tensor | float, length: Lengthscale) -> Tensor:
    """KL of N(m, s²), with one s for all weights or one for each."""
    scale = torch.as_tensor(log_sd, dtype=mean.dtype, device=mean.device) + _log(length)
    scale = scale.expand(mean.shape)
    # E26: (l² m'm + sum_k (l² s² - log(l² s²) - 1)) / 2
    each = length**2 * mean.square() + torch.exp(2 * scale) - 2 * scale - 1
    return 0.5 * each.sum()


def multiplied(rows: Tensor, variance: float, length: Lengthscale) -> Tensor:
    """KL of rows m (1 + sqrt(a) e), e ~ N(0, 1), up to a constant (s -> 0).

    Such a row is N(m, a m m' + s² I): its volume grows with |m|.
    """
    square = rows.square().sum(-1)  # shape: (units,)
    volume = (variance * square).clamp(min=torch.finfo(rows.dtype).tiny)
    # E32: (l²/2) (1 + a) m'm - (1/2) log(a m'm)
    return (0.5 * length**2 * (1 + variance) * square - 0.5 * volume.log()).sum()


def mask_entropy(logit: Tensor) -> Tensor:
    """Entropy of a mask with these log odds, without cancellation."""
    odds = -logit.abs()
    # E20: H(p) = -p log p - (1-p) log(1-p)
    return softplus(odds) - odds * torch.sigmoid(odds)


def two_components(
    rows: Tensor, keep_prob: float, sd: float, length: Lengthscale
) -> Tensor:
    """KL of rows p N(m, s² I) + (1-p) N(0, s² I), exactly; ``rows`` are p m."""
    mean = rows / keep_prob
    spread = gaussian(torch.zeros_like(mean), math.log(sd), length)
    information = _information(torch.linalg.vector_norm(mean, dim=-1) / sd, keep_prob)
    # E24: (p l²/2) m'm + (K/2) (l² s² - log(l² s²) - 1) - I
    return dropped(rows, keep_prob, length) + spread - information.sum()


def components(
    means: Tensor, probabilities: Sequence[float], sd: float, length: Lengthscale
) -> Tensor:
    """KL of rows sum_i p_i N(m_i, s² I), from above; ``means`` (components, rows, K).

    Proposition 1 of paper 000 less a lower bound of the information about the
    component; right both for components that coincide and for separate ones.
    """
    share = means.new_tensor(probabilities)
    square = torch.tensordot(share, means.square(), 1).sum()
    spread = gaussian(torch.zeros_like(means[0]), math.log(sd), length)
    # E37: sum_i (p_i l²/2) m_i'm_i + (K/2) (l² s² - log(l² s²) - 1) - I
    return 0.5 * length**2 * square + spread - _pairwise(means, share, sd).sum()


def low_rank(
    mean: Tensor, log_sd: Tensor, factors: Tensor, length: Lengthscale
) -> Tensor:
    """KL of N(m, diag(s²) + V'V); ``factors`` V is (rank, weights)."""
    ratio = factors * torch.exp(-log_sd)
    inner = ratio @ ratio.T + torch.eye(len(factors), dtype=mean.dtype).to(mean.device)
    log_det = 2 * torch.linalg.cholesky(inner).diagonal().log().sum()
    trace = length**2 * factors.square().sum()
    # E38: KL of N(m, diag(s²)) + (l² |V|² - log|I + V diag(s²)^-1 V'|) / 2
    return gaussian(mean, log_sd, length) + 0.5 * (trace - log_det)


def _information(gap: Tensor, keep_prob: float) -> Tensor:
    """I of two components, |m|/s = ``gap`` apart, by a trapezoid rule."""
    gap = gap.clamp(max=_FAR)
    x = torch.linspace(-_TAIL, _TAIL, _NODES, dtype=gap.dtype).to(gap.device)
    x = x.reshape(-1, *[1] * gap.dim())
    prior = torch.logit(torch.tensor(keep_prob, dtype=gap.dtype)).to(gap.device)
    prior = prior.clamp(-_LARGEST_LOGIT, _LARGEST_LOGIT)
    density = torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)
    kept, lost = (mask_entropy(prior + gap * (x + s * gap / 2)) for s in (1, -1))
    doubt = (density * (keep_prob * kept + (1 - keep_prob) * lost)).sum(0)
    # E23: I = H(p) - E H(p | w)
    return mask_entropy(prior) - doubt * (2 * _TAIL / (_NODES - 1))


def _pairwise(means: Tensor, share: Tensor, sd: float) -> Tensor:
    """A lower bound of I for several components, row by row."""
    gaps = (means[:, None] - means[None]).square().sum(-1)
    overlap = share.log()[:, None] - gaps / (8 * sd**2)  # shape: (i, j, rows)
    # E36: I >= -sum_i p_i log sum_j p_j exp(-|m_i - m_j|² / (8 s²))
    return -torch.tensordot(share, torch.logsumexp(overlap, 1), 1)


def _log(length: Lengthscale) -> float | Tensor:
    return length.log() if isinstance(length, Tensor) else math.log(length)
