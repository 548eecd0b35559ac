"""Covariance between the outputs of a row, by the rules of ``moments``."""

from dataclasses import dataclass
from functools import reduce
from typing import Self, final

from torch import Tensor

from caveat.predictive.moments import blocks, flat_event, wide_dtype, working_dtype


@final
@dataclass(frozen=True, eq=False)
class JointMoments:
    """Count, mean (batch, D) and scatter (batch, D, D) of draws of D outputs.

    The scatter is held in the type of the draws, not in float64: it is D times as
    large as all else, and centred, so that nothing cancels in it.
    """

    count: int
    mean: Tensor  # shape: (batch, D)
    scatter: Tensor  # shape: (batch, D, D)

    @classmethod
    def of(cls, draws: Tensor) -> Self:
        """From draws of shape (draws, batch, *event), the event being flattened."""
        flat = flat_event(draws.detach(), 2)
        return reduce(cls.merge, (cls._of_block(block) for block in blocks(flat)))

    @property
    def covariance(self) -> Tensor:
        """Covariance with divisor ``count``."""
        # E2: (1/T) sum_t f_t f_t' - mean mean', computed about the mean
        return self.scatter / self.count  # shape: (batch, D, D)

    def merge(self, other: Self) -> Self:
        """Both sets of draws together."""
        count = self.count + other.count
        gap = other.mean - self.mean
        # E5: as for the variance, with the outer product of the gap
        between = _outer(gap) * (self.count * other.count / count)
        scatter = self.scatter + other.scatter + between.to(self.scatter)
        return type(self)(count, self.mean + gap * (other.count / count), scatter)

    @classmethod
    def _of_block(cls, block: Tensor) -> Self:
        block = block.to(working_dtype(block.dtype))
        pivot = block.mean(0)
        deviation = block - pivot  # shape: (draws, batch, D)
        drift = deviation.mean(0)
        scatter = deviation.permute(1, 2, 0) @ deviation.transpose(0, 1)
        mean = pivot.to(wide_dtype(block.device)) + drift
        return cls(len(block), mean, scatter - len(block) * _outer(drift))


def _outer(vectors: Tensor) -> Tensor:
    return vectors.unsqueeze(-1) * vectors.unsqueeze(-2)  # shape: (batch, D, D)
