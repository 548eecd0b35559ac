"""Closed forms given the earlier noise, averaged over draws of it.

By the law of total variance (ledger E96) only the spread of the conditional means is
sampled; the conditional variances are linear in the squared features, so that their
average is all that has to be kept.
"""

from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from caveat.predictive import Moments, merge
from caveat.predictive.covariance import JointMoments
from caveat.predictive.gaussian import JOINT_LIMIT
from caveat.predictive.moments import finite_moments, wide_dtype
from caveat.sampling.closed_form.beliefs import Belief, Independent
from caveat.sampling.closed_form.last_layer import LastLayer


@final
@dataclass(frozen=True, eq=False)
class ConditionalMoments:
    """Of the draws so far: conditional means, and the squares of the features.

    Attributes
    ----------
    means : Moments
        Of the means of the linear layer given the earlier noise.
    square : Tensor
        Sum of the squared features, of their shape.
    joint : JointMoments or None
        As ``means``, for covariances; None for one output, or too many.
    """

    means: Moments
    square: Tensor
    joint: JointMoments | None

    @classmethod
    def of(cls, means: Tensor, square: Tensor) -> Self:
        """From a block of conditional means, and the sum of their squared features."""
        size = means[0, 0].numel()
        joint = JointMoments.of(means) if 1 < size <= JOINT_LIMIT else None
        return cls(finite_moments(means), square.to(wide_dtype(square.device)), joint)

    def merge(self, other: Self) -> Self:
        """Both sets of draws together."""
        joint = None
        if self.joint is not None and other.joint is not None:
            joint = self.joint.merge(other.joint)
        square = self.square + other.square
        return type(self)(merge(self.means, other.means), square, joint)

    def belief(self, layer: LastLayer) -> tuple[Belief, Tensor]:
        """Mean and variance of the output, and how fast it goes with ``means``."""
        means = self.means
        total = layer.total(
            means.mean, self.square / means.count, means.variance, self._between()
        )
        one = torch.ones_like(means.mean)
        unit = Independent(means.mean, frozenset(), False, one, apart=True)
        return total, layer.finished(unit).variance.sqrt()

    def _between(self) -> Tensor | None:
        """Covariance of the conditional means, (batch, D, D), if it was gathered."""
        if self.joint is not None:
            return self.joint.covariance
        spread = self.means.variance.reshape(len(self.means.mean), -1)
        return spread.unsqueeze(-1) if spread.shape[1] == 1 else None
