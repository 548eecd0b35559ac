"""Class probabilities: of Gaussian logits, and told from logits by their sums.

.. [Lu2020] Z. Lu, E. Ie, F. Sha. Mean-field approximation to Gaussian-softmax integral
   with application to uncertainty estimation. arXiv:2006.07584, 2020.
"""

import math

import torch
from torch import Tensor

from caveat.predictive.moments import working_dtype

_PROBIT = math.pi / 8.0
_FAR = 0.1  # sums of probabilities are nearer to 1 than this in any type
_FEW = 16  # classes; torch takes them one by one, as they fill no vector of a CPU


def mean_field_softmax(mean: Tensor, covariance: Tensor) -> Tensor:
    """E softmax(z) for z ~ N(mean, covariance), approximately [Lu2020]_ (ledger E94).

    Parameters
    ----------
    mean : Tensor, shape (batch, classes)
        Of the logits.
    covariance : Tensor, shape (batch, classes, classes)
        Or variances of independent logits, of the shape of ``mean``.

    Returns
    -------
    Tensor, shape (batch, classes)
        Rows sum to 1. For two classes it is MacKay's probit approximation; nearly
        certain logits give their softmax.

    Examples
    --------
    >>> import torch
    >>> mean, variance = torch.tensor([[2.0, 0.0]]), torch.tensor([[8.0, 0.0]])
    >>> mean_field_softmax(mean, variance).round(decimals=3)
    tensor([[0.7280, 0.2720]])
    """
    joint = torch.diag_embed(covariance) if covariance.dim() == 2 else covariance
    own = joint.diagonal(dim1=-2, dim2=-1)
    # E94: p_k ~ 1 / sum_i exp( -(m_k - m_i) / sqrt(1 + (pi/8) Var(z_k - z_i)) )
    apart = own.unsqueeze(-1) + own.unsqueeze(-2) - 2.0 * joint
    gaps = mean.unsqueeze(-1) - mean.unsqueeze(-2)  # shape: (batch, classes, classes)
    gaps = gaps / (1.0 + _PROBIT * apart.clamp(min=0.0)).sqrt()
    return (-torch.logsumexp(-gaps, -1)).softmax(-1)


def log_softmax(logits: Tensor) -> Tensor:
    """Logarithms of class probabilities, classes last; fast for few classes, too.

    Examples
    --------
    >>> import torch
    >>> log_softmax(torch.tensor([[0.0, 0.0], [1.0, -torch.inf]])).exp()
    tensor([[0.5000, 0.5000],
            [1.0000, 0.0000]])
    """
    if logits.shape[-1] >= _FEW:
        return logits.log_softmax(-1)
    first = logits.movedim(-1, 0).contiguous()
    return first.log_softmax(0).movedim(0, -1)


def look_like_probs(values: Tensor) -> bool:
    """Whether all rows are at least 0 and sum to 1, along the last axis."""
    first = values[(0,) * (values.ndim - 1)].tolist()
    # The usual case is seen by one row, without an operation; too many are no matter.
    if min(first) < 0.0 or abs(sum(first) - 1.0) > _FAR:
        return False
    return are_probs(values)


def are_probs(values: Tensor) -> bool:
    """Whether all rows are at least 0 and sum to 1, as well as their type can tell."""
    wide = values.to(working_dtype(values.dtype))
    slack = 1e-2 if values.dtype in (torch.float16, torch.bfloat16) else 1e-4
    sums = (wide.sum(-1) - 1.0).abs() <= slack
    return bool(sums.all()) and bool((wide >= 0.0).all())
