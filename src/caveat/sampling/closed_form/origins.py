"""Which elements of a value are copies of one drawn number.

Variances add up only over elements that are drawn apart. A mask may have been expanded,
or a masked value repeated, before a layer sums over it; then they do not. So each noise
numbers its elements, and the numbers follow it through views: where the same number
turns up twice, nothing is claimed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from caveat._torch import storage_address


@dataclass(frozen=True, eq=False)
class Origins:
    """The number of the drawn element behind each element of a value.

    Attributes
    ----------
    numbers : Tensor
        In the shape of the value, or one that broadcasts to it.
    origin : Tensor
        The numbers as they were given out, all different.

    Examples
    --------
    >>> drawn = Origins.of((1, 3))
    >>> drawn.apart_in_rows()
    True
    >>> drawn.seen(lambda mask: mask.repeat(1, 2)).apart_in_rows()
    False
    """

    numbers: Tensor
    origin: Tensor

    @classmethod
    def of(cls, shape: Sequence[int]) -> Self:
        """A noise of this shape: every element is drawn for itself."""
        numbers = torch.arange(torch.Size(shape).numel()).view(tuple(shape))
        return cls(numbers, numbers)

    def seen(self, view: Callable[[Tensor], Tensor]) -> "Origins":
        """After a change of shape."""
        return Origins(view(self.numbers), self.origin)

    def apart_on_last_axis(self) -> bool:
        """Whether no number turns up twice along the last axis."""
        few = _without_repeats(self.numbers, keep=self.numbers.dim() - 1)
        return self._never_copied() or _all_differ(few)

    def apart_in_rows(self) -> bool:
        """Whether no number turns up twice in a row; rows may share them all."""
        return self._never_copied() or _all_differ(_rows(self.numbers))

    def _never_copied(self) -> bool:
        """Still the numbers as they were given out, seen in another order."""
        same_memory = storage_address(self.numbers) == storage_address(self.origin)
        strides = zip(self.numbers.shape, self.numbers.stride(), strict=True)
        return same_memory and all(size == 1 or stride for size, stride in strides)


def _without_repeats(numbers: Tensor, keep: int) -> Tensor:
    """One of each along axes that only repeat, but for the axis ``keep``."""
    for axis, (size, stride) in enumerate(
        zip(numbers.shape, numbers.stride(), strict=True)
    ):
        if axis != keep and size > 1 and stride == 0:
            numbers = numbers.narrow(axis, 0, 1)
    return numbers


def _rows(numbers: Tensor) -> Tensor:
    if numbers.dim() == 0:
        return numbers.view(1, 1)
    if numbers.stride(0) == 0:
        numbers = numbers[:1]  # rows are alike
    return numbers.reshape(len(numbers), -1)


def _all_differ(numbers: Tensor) -> bool:
    ordered = numbers.sort(-1).values
    return not bool((ordered[..., 1:] == ordered[..., :-1]).any())
