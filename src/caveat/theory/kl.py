"""KL divergence of the dropout posterior from its prior, one unit at a time.

A *row* is the K weights that one unit feeds, dropped together. Its posterior and prior
are (paper 000 eqs 9-11, with length-scale l)

    q(w) = p N(m, s² I) + (1-p) N(0, s² I),        prior(w) = N(0, I/l²)

    KL = (p l²/2) m'm + (K/2) (l² s² - log(l² s²) - 1) - I,        0 <= I <= H(p)

with I the information that w carries about the unit being kept. Proposition 1 of the
paper leaves I out, which gives an upper bound; with H(p) in its place it is a lower
bound, and right to many digits if |m| is large against s. H(p) does not depend on m,
but it must be kept when p is learned. Rows of a matrix are independent: sum over them.

In torch, ``weight`` of a linear layer is (outputs, inputs), and inputs are dropped, so
the rows are those of ``weight.T``; and as torch stores W = p M, ``mean`` is W / p.

The formulas are those of ``theory.divergence``; here they are checked.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from caveat import _validation as validation
from caveat._random import Seed, as_seed
from caveat.theory import divergence


class MonteCarloEstimate(NamedTuple):
    """A Monte Carlo mean.

    Attributes
    ----------
    value, standard_error : Tensor
        The mean, and its standard error.
    """

    value: Tensor
    standard_error: Tensor


def mask_entropy(keep_prob: float | Tensor) -> Tensor:
    """Entropy H(p) of a mask, in nats (ledger E20).

    Parameters
    ----------
    keep_prob : float or Tensor
        p, one minus the drop rate.

    Returns
    -------
    Tensor
        -p log p - (1-p) log(1-p), of the shape of ``keep_prob``.

    Examples
    --------
    >>> round(mask_entropy(0.5).item(), 9)
    0.693147181
    """
    keep = _tensor(validation.keep_probs("keep_prob", keep_prob))
    # E20: H(p) = -p log p - (1-p) log(1-p)
    return torch.special.entr(keep) + torch.special.entr(1 - keep)


def kl_row_upper_bound(
    mean: Tensor,
    *,
    keep_prob: float | Tensor,
    component_std: float | Tensor,
    lengthscale: float = 1.0,
) -> Tensor:
    """KL of a dropped row by Proposition 1 of paper 000: never too small.

    (p l²/2) m'm + (K/2)(l² s² - log(l² s²) - 1) (ledger E21; the paper's section 3.3
    lacks the 1/2 of the second term).

    Parameters
    ----------
    mean : Tensor, shape (*rows, K)
        m, unscaled: the weights that torch stores, divided by the keep probability.
    keep_prob : float or Tensor
        p, a number or one per row.
    component_std : float or Tensor
        s, a number or one per row; small, and fixed before bounds are compared.
    lengthscale : float
        l.

    Returns
    -------
    Tensor, shape (*rows,)
        In nats, differentiable.

    Examples
    --------
    >>> mean = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)
    >>> bound = kl_row_upper_bound(mean, keep_prob=0.5, component_std=0.1)
    >>> round(bound.item(), 9)
    5.985255279
    """
    mean, keep, std = _row(mean, keep_prob, component_std)
    length = validation.lengthscale(lengthscale)
    rows = mean * _along(keep, mean)
    return divergence.two_components_above(rows, keep, std.log(), length)


def kl_row_lower_bound(
    mean: Tensor,
    *,
    keep_prob: float | Tensor,
    component_std: float | Tensor,
    lengthscale: float = 1.0,
) -> Tensor:
    """KL of a dropped row by Proposition 1 less H(p): the usual approximation.

    Never too large, and exact as s -> 0 for m other than 0 (ledger E22). Its gradient
    in p is right, that of the upper bound is not.

    Parameters
    ----------
    mean, keep_prob, component_std, lengthscale
        As in ``kl_row_upper_bound``.

    Returns
    -------
    Tensor, shape (*rows,)
        In nats, differentiable.

    Examples
    --------
    >>> mean = torch.tensor([1.0, -1.0, 0.5], dtype=torch.float64)
    >>> bound = kl_row_lower_bound(mean, keep_prob=0.5, component_std=0.1)
    >>> round(bound.item(), 9)
    5.292108098
    """
    upper = kl_row_upper_bound(
        mean, keep_prob=keep_prob, component_std=component_std, lengthscale=lengthscale
    )
    # E22: Proposition 1 - H(p)
    return upper - mask_entropy(keep_prob).to(upper)


def kl_row_exact(
    mean: Tensor,
    *,
    keep_prob: float | Tensor,
    component_std: float | Tensor,
    lengthscale: float = 1.0,
) -> Tensor:
    """KL of a dropped row, exactly, by a one-dimensional integral (ledger E24).

    Parameters
    ----------
    mean, keep_prob, component_std, lengthscale
        As in ``kl_row_upper_bound``.

    Returns
    -------
    Tensor, shape (*rows,)
        In nats, differentiable.

    Examples
    --------
    >>> mean = torch.tensor([0.3, 0.4], dtype=torch.float64)
    >>> exact = kl_row_exact(mean, keep_prob=0.5, component_std=0.5)
    >>> round(exact.item(), 9)
    0.587372879
    """
    upper = kl_row_upper_bound(
        mean, keep_prob=keep_prob, component_std=component_std, lengthscale=lengthscale
    )
    # E24: Proposition 1 - I
    return upper - component_information(
        mean, keep_prob=keep_prob, component_std=component_std
    )


def component_information(
    mean: Tensor, *, keep_prob: float | Tensor, component_std: float | Tensor
) -> Tensor:
    """Information I that a row of weights carries about its unit being kept.

    I = H(p) - E H(p given w) (ledger E23). Only the distance |m|/s of the components
    matters, so the expectation is an integral along the line through them.

    Parameters
    ----------
    mean, keep_prob, component_std
        As in ``kl_row_upper_bound``.

    Returns
    -------
    Tensor, shape (*rows,)
        In nats, between 0 and H(p).

    Examples
    --------
    >>> mean = torch.tensor([3.0, 4.0])
    >>> component_information(mean, keep_prob=0.5, component_std=0.1)
    tensor(0.6931)
    """
    row, keep, std = _row(mean, keep_prob, component_std)
    keep = keep.double()
    gap = torch.linalg.vector_norm(row.double(), dim=-1) / std.double()
    return divergence.information(gap, keep).to(mean.dtype)


def kl_row_monte_carlo(
    mean: Tensor,
    *,
    keep_prob: float | Tensor,
    component_std: float | Tensor,
    lengthscale: float = 1.0,
    n_draws: int,
    seed: Seed = None,
) -> MonteCarloEstimate:
    """KL of a dropped row by drawing weights, with its standard error (ledger E25).

    Parameters
    ----------
    mean, keep_prob, component_std, lengthscale
        As in ``kl_row_upper_bound``.
    n_draws : int
        T, two or more.
    seed : int, torch.Generator or None
        Fixes the draws.

    Returns
    -------
    MonteCarloEstimate
        ``value`` and ``standard_error``, each of shape (*rows,).

    Examples
    --------
    >>> mean = torch.tensor([0.3, 0.4], dtype=torch.float64)
    >>> estimate = kl_row_monte_carlo(
    ...     mean, keep_prob=0.5, component_std=0.5, n_draws=10_000, seed=0
    ... )
    >>> bool((estimate.value - 0.587372879).abs() < 5 * estimate.standard_error)
    True
    """
    n_draws = validation.several("n_draws", n_draws)
    length = validation.lengthscale(lengthscale)
    mean, keep, std = _row(mean, keep_prob, component_std)
    keep, std = _along(keep, mean), _along(std, mean)
    generator = torch.Generator(mean.device).manual_seed(as_seed(seed) % 2**63)
    uniform = mean.new_empty(n_draws, *mean.shape[:-1], 1).uniform_(generator=generator)
    noise = mean.new_empty(n_draws, *mean.shape).normal_(generator=generator)
    # 000 eq. 13: w = z m + s eps
    weights = (uniform < keep) * mean + std * noise
    # E25: (1/T) sum_t log q(w_t) - log prior(w_t)
    ratio = _log_mixture(weights, mean, keep, std) - _log_normal(weights, 1 / length)
    return MonteCarloEstimate(ratio.mean(0), ratio.std(0) / math.sqrt(n_draws))


def kl_bias(
    mean: Tensor, *, component_std: float | Tensor, lengthscale: float = 1.0
) -> Tensor:
    """KL of N(m, s² I) from N(0, I/l²), as for biases, which nothing drops.

    (l² m'm + K (l² s² - log(l² s²) - 1)) / 2 (ledger E26).

    Parameters
    ----------
    mean : Tensor, shape (*rows, K)
        m.
    component_std : float or Tensor
        s.
    lengthscale : float
        l.

    Returns
    -------
    Tensor, shape (*rows,)
        In nats, differentiable.

    Examples
    --------
    >>> round(kl_bias(torch.tensor([1.0, 1.0]), component_std=1.0).item(), 6)
    1.0
    """
    mean, _, std = _row(mean, 1.0, component_std)
    length = validation.lengthscale(lengthscale)
    return divergence.gaussian(mean, _along(std.log(), mean), length).sum(-1)


def _row(
    mean: Tensor, keep_prob: float | Tensor, component_std: float | Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """All three as tensors of one type: (*rows, K), and twice () or (*rows,)."""
    mean = validation.rows_of_weights("mean", mean)
    keep = validation.keep_probs("keep_prob", keep_prob)
    std = validation.positive_values("component_std", component_std)
    keep, std = (_tensor(value).to(mean) for value in (keep, std))
    validation.per_row("keep_prob", keep.shape, mean.shape[:-1])
    validation.per_row("component_std", std.shape, mean.shape[:-1])
    return mean, keep, std


def _tensor(value: float | Tensor) -> Tensor:
    """A number in double precision; a tensor as it is."""
    if isinstance(value, Tensor):
        return value
    return torch.tensor(value, dtype=torch.float64)


def _along(per_row: Tensor, mean: Tensor) -> Tensor:
    """One number, or one per row, beside the weights (*rows, K)."""
    return per_row.unsqueeze(-1) if per_row.ndim else per_row


def _log_mixture(weights: Tensor, mean: Tensor, keep: Tensor, std: Tensor) -> Tensor:
    """log q(w); ``keep`` and ``std`` have a last axis of 1, or none."""
    kept = keep.log() + _log_normal(weights - mean, std, keepdim=True)
    dropped = torch.log1p(-keep) + _log_normal(weights, std, keepdim=True)
    return torch.logaddexp(kept, dropped).squeeze(-1)


def _log_normal(x: Tensor, std: Tensor | float, *, keepdim: bool = False) -> Tensor:
    """log N(x; 0, s² I) over the last axis."""
    scaled = (x / std).square().sum(-1, keepdim=keepdim)
    log_std = std.log() if isinstance(std, Tensor) else math.log(std)
    return -0.5 * scaled - x.shape[-1] * (log_std + 0.5 * math.log(2 * math.pi))
