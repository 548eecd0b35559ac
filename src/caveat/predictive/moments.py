"""Mean and scatter of draws: streaming, mergeable, in bounded memory.

Draws are read in blocks. Within a block the mean is taken first and deviations
from it after (two passes, corrected for the rounding of the mean), in float32 for
draws of 32 bits or fewer and in float64 for float64. Blocks are merged in float64,
so neither a large mean nor many small blocks cost accuracy [Chan1983]_.

.. [Chan1983] T. F. Chan, G. H. Golub, R. J. LeVeque. Algorithms for computing the
   sample variance: analysis and recommendations. The American Statistician 37, 1983.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Self, final

import torch
from torch import Tensor

from caveat import _validation
from caveat.errors import ParameterError

BLOCK = 1 << 20  # numbers in one block: a few megabytes
_SMALL = (
    1 << 14
)  # numbers for which the widest type costs less than care in a short one


def working_dtype(dtype: torch.dtype) -> torch.dtype:
    """The type answers are given in: float64 for float64, else float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def wide_dtype(device: torch.device) -> torch.dtype:
    """The widest type of a device: Apple's GPUs have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def blocks(draws: Tensor) -> Iterator[Tensor]:
    """Cut ``draws`` along its first axis into blocks of about ``BLOCK`` numbers."""
    if 0 < draws.numel() <= BLOCK:
        return iter((draws,))
    per_draw = max(draws[0].numel(), 1)
    return iter(torch.split(draws, max(BLOCK // per_draw, 1)))


def flat_event(tensor: Tensor, first: int) -> Tensor:
    """Make one axis of all from ``first`` on; of none, one of size 1."""
    return tensor.unsqueeze(-1).flatten(first)


@final
@dataclass(frozen=True, eq=False)
class Moments:
    """Count, mean and scatter of a set of draws.

    Attributes
    ----------
    count : int
        Number of draws.
    mean : Tensor
        Their mean, in the widest type of the device (float64 but on Apple GPUs).
    scatter : Tensor
        Sum of squared deviations from the mean, of the shape of ``mean``.

    Examples
    --------
    >>> import torch
    >>> left = Moments.of(torch.tensor([[1.0], [2.0]]))
    >>> right = Moments.of(torch.tensor([[3.0], [4.0]]))
    >>> both = merge(left, right)
    >>> both.count, both.mean.item(), both.variance.item()
    (4, 2.5, 1.25)
    """

    count: int
    mean: Tensor
    scatter: Tensor

    @classmethod
    def of(cls, draws: Tensor) -> Self:
        """Moments over the first axis of ``draws``.

        Parameters
        ----------
        draws : Tensor, shape (draws, *shape)
            Floating-point numbers; read in blocks, never copied whole.

        Returns
        -------
        Moments
            With ``mean`` and ``scatter`` of shape ``shape``.
        """
        draws = _validation.draws(draws, axes="(draws, *shape)", least=1).detach()
        return cls.of_checked(draws)

    @classmethod
    def of_checked(cls, draws: Tensor) -> Self:
        """As :meth:`of`, for draws that were found to be some."""
        if draws.numel() <= _SMALL:
            return cls._of_block(draws)
        parts = (cls._of_block(block) for block in blocks(draws))
        return reduce(cls._merge, parts)

    @property
    def variance(self) -> Tensor:
        """Variance with divisor ``count``, as in the papers (not ``count - 1``)."""
        return self.scatter / self.count

    @property
    def mean_error(self) -> Tensor:
        """Monte Carlo standard error of ``mean``; infinite for a single draw."""
        if self.count == 1:
            return torch.full_like(self.scatter, torch.inf)
        # E4: s.e. = sqrt( [sum_t (f_t - mean)^2 / (T - 1)] / T )
        return (self.scatter / (self.count - 1) / self.count).sqrt()

    @classmethod
    def _of_block(cls, block: Tensor) -> Self:
        wide = wide_dtype(block.device)
        if wide == torch.float64 and block.numel() <= _SMALL:
            variance, mean = torch.var_mean(block.to(wide), 0, correction=0)
            return cls(len(block), mean, variance.mul_(len(block)))
        block = block.to(working_dtype(block.dtype))
        pivot = block.mean(0)
        deviation = block - pivot
        drift = deviation.mean(0).to(wide)  # what rounding left in the pivot
        scatter = deviation.square_().sum(0).to(wide) - len(block) * drift.square()
        return cls(len(block), pivot.to(wide) + drift, scatter.clamp_(min=0.0))

    def _merge(self, other: Self) -> Self:
        count = self.count + other.count
        gap = other.mean - self.mean
        # E5: S = S_1 + S_2 + (m_2 - m_1)^2 n_1 n_2 / n;  m = m_1 + (m_2 - m_1) n_2 / n
        between = gap.square() * (self.count * other.count / count)
        mean = self.mean + gap * (other.count / count)
        return type(self)(count, mean, self.scatter + other.scatter + between)


def finite_moments(draws: Tensor) -> Moments:
    """Moments of ``draws`` (draws, batch, …), or an error if any is not finite."""
    moments = Moments.of_checked(draws.detach())
    dtype = working_dtype(draws.dtype)
    # NaN and inf reach the sums. One number is looked at first, as it is cheaper.
    scatter = moments.scatter
    total = float(scatter if scatter.numel() == 1 else scatter.sum())
    clear = total <= torch.finfo(dtype).max
    if not clear and not bool(scatter.to(dtype).isfinite().all()):
        _validation.finite_draws("The draws of a model", ~torch.isfinite(draws))
        raise ParameterError(
            f"The squares of the draws overflow {dtype}. "
            f"Rescale the outputs, or pass draws.double()."
        )
    return moments


def few_moments(draws: Tensor) -> tuple[Tensor, Tensor] | None:
    """Mean and variance of few draws in their own type; None: as for many.

    On a CPU torch sums numbers of 32 bits in 64, so nothing is gained by widening them.
    """
    few = draws.dtype is torch.float32 and draws.numel() <= _SMALL
    if not few or draws.device.type != "cpu":
        return None
    variance, mean = torch.var_mean(draws.detach(), 0, correction=0)
    total = float(variance if variance.numel() == 1 else variance.sum())
    clear = total * len(draws) <= torch.finfo(torch.float32).max  # not so NaN
    return (mean, variance) if clear else None


def merge(left: Moments, right: Moments) -> Moments:
    """Moments of two disjoint sets of draws together (ledger E5).

    Parameters
    ----------
    left, right : Moments
        Of the same shape; which of them comes first makes no difference.

    Returns
    -------
    Moments
        As if all the draws had been seen at once, but for rounding.
    """
    _validation.same_shape("right.mean", right.mean.shape, left.mean.shape)
    return left._merge(right)
