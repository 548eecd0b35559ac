"""KL terms as raw formulas: differentiable, in the stored weights W = p M.

The prior of each weight is N(0, 1/l²). These functions check nothing and have no
branches on values, so that they can be mapped over many networks at once
(``torch.func.vmap``). ``theory.kl`` has them checked, one row of weights at a time; the
families of ``caveat.noise`` sum them over a layer.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import torch
from torch import Tensor
from torch.nn.functional import softplus

Lengthscale: TypeAlias = float | Tensor

_FAR = 100.0  # gap in standard deviations at which components do not overlap
_TAIL, _NODES = 10.0, 401  # of the trapezoid rule; its error is below rounding


def dropped(square: Tensor, keep_prob: float | Tensor, length: Lengthscale) -> Tensor:
    """KL of weights of which the share p is kept, up to a constant (s -> 0).

    ``square`` is |W|² of all weights that have this p, or of each row.
    """
    # E30: (p l²/2) |M|² = (l²/(2p)) |W|²
    return 0.5 * length**2 / keep_prob * square


def spread(log_std: Tensor | float, length: Lengthscale, like: Tensor) -> Tensor:
    """KL of N(0, s²), in the type of ``like``."""
    log_std = torch.as_tensor(log_std, dtype=like.dtype, device=like.device)
    scale = log_std + _log(length)
    # E26 at m = 0: (l² s² - log(l² s²) - 1) / 2
    return 0.5 * (torch.exp(2 * scale) - 2 * scale - 1)


def gaussian(mean: Tensor, log_std: Tensor | float, length: Lengthscale) -> Tensor:
    """KL of each N(m, s²), with one s for all weights or one for each."""
    # E26: (l² m² + l² s² - log(l² s²) - 1) / 2
    return 0.5 * length**2 * mean.square() + spread(log_std, length, mean)


def multiplied(rows: Tensor, variance: float, length: Lengthscale) -> Tensor:
    """KL of each row m (1 + sqrt(a) e), e ~ N(0, 1), up to a constant (s -> 0).

    Such a row is N(m, a m m' + s² I): its volume grows with |m|.
    """
    square = rows.square().sum(-1)  # shape: (units,)
    volume = (variance * square).clamp(min=torch.finfo(rows.dtype).tiny)
    # E32: (l²/2) (1 + a) m'm - (1/2) log(a m'm)
    return 0.5 * length**2 * (1 + variance) * square - 0.5 * volume.log()


def mask_entropy(logit: Tensor) -> Tensor:
    """Entropy of a mask with these log odds, without cancellation."""
    odds = -logit.abs()
    # E20: H(p) = -p log p - (1-p) log(1-p)
    return softplus(odds) - odds * torch.sigmoid(odds)


def two_components(
    rows: Tensor,
    keep_prob: float | Tensor,
    log_std: float | Tensor,
    length: Lengthscale,
) -> Tensor:
    """KL of each row p N(m, s² I) + (1-p) N(0, s² I), exactly; ``rows`` are p m."""
    log_std = torch.as_tensor(log_std, dtype=rows.dtype, device=rows.device)
    gap = torch.linalg.vector_norm(rows, dim=-1) / keep_prob / log_std.exp()
    # E24: (p l²/2) m'm + (K/2) (l² s² - log(l² s²) - 1) - I
    upper = two_components_above(rows, keep_prob, log_std, length)
    return upper - information(gap, keep_prob)


def two_components_above(
    rows: Tensor,
    keep_prob: float | Tensor,
    log_std: float | Tensor,
    length: Lengthscale,
) -> Tensor:
    """Proposition 1 of paper 000: KL of two components without the information."""
    square = rows.square().sum(-1)
    # E21: (p l²/2) m'm + (K/2) (l² s² - log(l² s²) - 1)
    fit = dropped(square, keep_prob, length)
    return fit + rows.shape[-1] * spread(log_std, length, rows)


def information(gap: Tensor, keep_prob: float | Tensor) -> Tensor:
    """I of two components, |m|/s = ``gap`` apart, by a trapezoid rule.

    The nodes are fixed, x standard deviations from the component that w came from: the
    log odds are then those of the mask plus gap (x ± gap/2).
    """
    gap = gap.clamp(max=_FAR)
    x = torch.linspace(-_TAIL, _TAIL, _NODES, dtype=gap.dtype).to(gap.device)
    x = x.reshape(-1, *[1] * gap.dim())
    keep = torch.as_tensor(keep_prob, dtype=gap.dtype, device=gap.device)
    largest = -math.log(torch.finfo(gap.dtype).tiny)  # p = 1 has infinite log odds
    prior = torch.logit(keep).clamp(-largest, largest)
    density = torch.exp(-0.5 * x.square()) / math.sqrt(2 * math.pi)
    kept, lost = (mask_entropy(prior + gap * (x + s * gap / 2)) for s in (1, -1))
    doubt = (density * (keep * kept + (1 - keep) * lost)).sum(0)
    # E23: I = H(p) - E H(p | w)
    return mask_entropy(prior) - doubt * (2 * _TAIL / (_NODES - 1))


def components(
    means: Tensor, probabilities: Sequence[float], std: float, length: Lengthscale
) -> Tensor:
    """KL of rows sum_i p_i N(m_i, s² I), from above; ``means`` (components, rows, K).

    Proposition 1 of paper 000 less a lower bound of the information about the
    component; right both for components that coincide and for separate ones.
    """
    share = means.new_tensor(probabilities)
    square = torch.tensordot(share, means.square().sum(-1), 1)
    width = means.shape[-1] * spread(math.log(std), length, means)
    # E37: sum_i (p_i l²/2) m_i'm_i + (K/2) (l² s² - log(l² s²) - 1) - I
    return 0.5 * length**2 * square + width - _pairwise(means, share, std)


def low_rank(
    mean: Tensor, log_std: Tensor, factors: Tensor, length: Lengthscale
) -> Tensor:
    """KL of N(m, diag(s²) + V'V); ``factors`` V is (rank, weights)."""
    ratio = factors * torch.exp(-log_std)
    inner = ratio @ ratio.T + torch.eye(len(factors), dtype=mean.dtype).to(mean.device)
    log_det = 2 * torch.linalg.cholesky(inner).diagonal().log().sum()
    trace = length**2 * factors.square().sum()
    # E38: KL of N(m, diag(s²)) + (l² |V|² - log|I + V diag(s²)^-1 V'|) / 2
    return gaussian(mean, log_std, length).sum() + 0.5 * (trace - log_det)


def _pairwise(means: Tensor, share: Tensor, std: float) -> Tensor:
    """A lower bound of I for several components, row by row."""
    gaps = (means[:, None] - means[None]).square().sum(-1)
    overlap = share.log()[:, None] - gaps / (8 * std**2)  # shape: (i, j, rows)
    # E36: I >= -sum_i p_i log sum_j p_j exp(-|m_i - m_j|² / (8 s²))
    return -torch.tensordot(share, torch.logsumexp(overlap, 1), 1)


def _log(length: Lengthscale) -> float | Tensor:
    return length.log() if isinstance(length, Tensor) else math.log(length)
