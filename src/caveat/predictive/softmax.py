"""Class probabilities of Gaussian logits, without sampling.

.. [Lu2020] Z. Lu, E. Ie, F. Sha. Mean-field approximation to Gaussian-softmax integral
   with application to uncertainty estimation. arXiv:2006.07584, 2020.
"""

import math

import torch
from torch import Tensor

_PROBIT = math.pi / 8.0


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
