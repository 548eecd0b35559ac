"""What a network is trained on: a loss per row and its gradient in the outputs.

Each loss is minus a log-likelihood up to a constant, so weight decay follows from the
prior by ``caveat.theory``: the half squared error at unit precision, the Gaussian with
a learned precision, the softmax likelihood.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, final

import torch
from torch import Tensor
from torch.nn import functional as F

from caveat.errors import ParameterError

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


class Likelihood(ABC):
    """An objective that is minus a log-likelihood, and what follows from that.

    Attributes
    ----------
    precision : float or None
        tau that the loss stands for: 1 if it is a log-likelihood as it is; None for a
        squared error, whose precision is to be given or found.
    has_head : bool
        Whether the second half of the outputs are log precisions.
    scales_targets : bool
        Whether targets are learned in standard units; class numbers are not.
    """

    precision: ClassVar[float | None] = 1.0
    has_head: ClassVar[bool] = False
    scales_targets: ClassVar[bool] = True

    @abstractmethod
    def n_outputs(self, n_targets: int) -> int:
        """How many outputs a network needs for so many targets."""

    @abstractmethod
    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss of each row, shape (..., rows)."""

    @abstractmethod
    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Derivative of each row's loss in its outputs, shaped like ``outputs``."""


@final
@dataclass(frozen=True)
class SquaredError(Likelihood):
    """Half the squared error, summed over the outputs."""

    precision: ClassVar[float | None] = None

    def n_outputs(self, n_targets: int) -> int:
        return n_targets

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return 0.5 * (outputs - targets).square().sum(-1)

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return outputs - targets


@final
@dataclass(frozen=True)
class GaussianWithPrecision(Likelihood):
    """Minus the Gaussian log-likelihood of outputs (means, log precisions).

    Parameters
    ----------
    beta : float
        In the gradient a target weighs its own precision to the power of minus this, as
        a constant ([Seitzer2022]_): 0 is the likelihood; with 1 means are learned as by
        a squared error, rows thought noisy as well as others.

    References
    ----------
    .. [Seitzer2022] Seitzer, M., Tavakoli, A., Antic, D., and Martius, G. (2022). On
       the pitfalls of heteroscedastic uncertainty estimation with probabilistic neural
       networks. *International Conference on Learning Representations*.
    """

    has_head: ClassVar[bool] = True

    beta: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.beta <= 1.0:
            raise ParameterError(f"beta must be in [0, 1]. Got {self.beta!r}.")

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
        slopes = torch.cat([pull, 0.5 * (pull * gap - 1) * free], -1)
        if not self.beta:
            return slopes
        weights = (-self.beta * log_precision).exp()
        return slopes * torch.cat([weights, weights], -1)


@final
@dataclass(frozen=True)
class SoftmaxCrossEntropy(Likelihood):
    """Minus the log probability of the class; targets are class numbers (..., 1).

    Parameters
    ----------
    n_classes : int
        Classes to tell apart.
    """

    scales_targets: ClassVar[bool] = False

    n_classes: int

    def n_outputs(self, n_targets: int) -> int:
        return self.n_classes

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        log_probs = outputs.log_softmax(-1)
        return -log_probs.gather(-1, targets.long()).squeeze(-1)

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        hit = F.one_hot(targets.squeeze(-1).long(), self.n_classes)
        return outputs.softmax(-1) - hit


@final
@dataclass(frozen=True)
class Weighted(Likelihood):
    """Another loss times the weight of the row, which is the last of its targets.

    Parameters
    ----------
    base : Likelihood
        The loss of a row of weight 1.
    """

    base: Likelihood

    @property
    def precision(self) -> float | None:  # type: ignore[override]
        return self.base.precision

    @property
    def has_head(self) -> bool:  # type: ignore[override]
        return self.base.has_head

    @property
    def scales_targets(self) -> bool:  # type: ignore[override]
        return self.base.scales_targets

    def n_outputs(self, n_targets: int) -> int:
        return self.base.n_outputs(n_targets - 1)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.base.loss(outputs, targets[..., :-1]) * targets[..., -1]

    def gradient(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.base.gradient(outputs, targets[..., :-1]) * targets[..., -1:]


def split_head(outputs: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and (bounded) log precision of the outputs of a net with a noise head."""
    mean, log_precision = outputs.chunk(2, -1)
    return mean, log_precision.clamp(-LOG_PRECISION_LIMIT, LOG_PRECISION_LIMIT)
