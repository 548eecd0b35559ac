"""What a network is trained on: a loss per row and its gradient in the outputs.

Each loss is minus a log-likelihood up to a constant, so weight decay follows from the
prior by ``caveat.theory``: the half squared error at unit precision, the Gaussian with
a learned precision, the softmax likelihood.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

LOG_PRECISION_LIMIT = 12.0  # of a learned log precision, in standardised units


class Objective(Protocol):
    """A loss per row. Shapes: outputs (..., rows, outputs), targets (..., rows, D)."""

    def n_outputs(self, n_targets: int) -> int:
        """How many outputs a network needs for so many targets."""
        ...

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of each row, shape (..., rows)."""
        ...

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Derivative of each row's loss in its outputs, shaped like ``outputs``."""
        ...


class SquaredError:
    """Half the squared error, summed over the outputs."""

    def n_outputs(self, n_targets: int) -> int:
        return n_targets

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return 0.5 * (outputs - targets).square().sum(-1)

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return outputs - targets


class GaussianWithPrecision:
    """Minus the Gaussian log-likelihood of outputs (means, log precisions)."""

    def n_outputs(self, n_targets: int) -> int:
        return 2 * n_targets

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        mean, log_precision = split_head(outputs)
        error = (targets - mean).square()
        return 0.5 * (log_precision.exp() * error - log_precision).sum(-1)

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        mean, log_precision = split_head(outputs)
        gap = mean - targets
        pull = log_precision.exp() * gap
        free = outputs[..., outputs.shape[-1] // 2 :].abs() < LOG_PRECISION_LIMIT
        return torch.cat([pull, 0.5 * (pull * gap - 1) * free], -1)


class SoftmaxCrossEntropy:
    """Minus the log probability of the class; targets are class numbers (..., 1)."""

    def __init__(self, n_classes: int) -> None:
        self._n_classes = n_classes

    def n_outputs(self, n_targets: int) -> int:
        return self._n_classes

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        log_probs = outputs.log_softmax(-1)
        return -log_probs.gather(-1, targets.long()).squeeze(-1)

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        hit = F.one_hot(targets.squeeze(-1).long(), self._n_classes)
        return outputs.softmax(-1) - hit


def split_head(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and (bounded) log precision of the outputs of a net with a noise head."""
    mean, log_precision = outputs.chunk(2, -1)
    return mean, log_precision.clamp(-LOG_PRECISION_LIMIT, LOG_PRECISION_LIMIT)
