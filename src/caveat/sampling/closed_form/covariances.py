"""Covariance of the outputs of a linear layer whose inputs are independent."""

import torch
from torch import Tensor

from caveat.predictive.gaussian import JOINT_LIMIT


def linear_covariance(weight: Tensor, variance: Tensor) -> Tensor | None:
    """W diag(v) W' for every row (ledger E87); None for too many outputs.

    Parameters
    ----------
    weight : Tensor, shape (outputs, features)
        Of the layer.
    variance : Tensor, shape (batch, *positions, features)
        Of the inputs; those of different positions are independent, too.

    Returns
    -------
    Tensor, shape (batch, D, D), with D = positions * outputs
    """
    rows, positions = len(variance), variance[0, ..., 0].numel()
    size = len(weight) * positions
    if size > JOINT_LIMIT:
        return None
    spread = variance.reshape(rows, positions, -1)
    # E87: Cov = W diag(v) W'
    joint = torch.matmul(weight * spread.unsqueeze(-2), weight.t())
    if positions == 1:
        return joint[:, 0]
    whole = joint.new_zeros(rows, positions, len(weight), positions, len(weight))
    for position in range(positions):
        whole[:, position, :, position] = joint[:, position]
    return whole.reshape(rows, size, size)
