"""Checks on a tape: what reached Python when it was recorded must be the same again.

What a model's Python code did with a value is not on the tape. So whoever replays a
tape repeats the reading, and a value that differs raises :class:`Departed`: the model
would perhaps have gone another way.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from caveat._torch import op_name


class Departed(Exception):
    """A replay came to a point where the model might go another way."""


@dataclass(frozen=True)
class Same:
    """``func`` gives the same number or truth value."""

    func: Callable[..., Any]
    expected: Any

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        found = self.func(*args, **kwargs)
        if not _same(found, self.expected):
            raise Departed(f"{self.func} gave {found}, not {self.expected}")


@dataclass(frozen=True)
class SameInEach:
    """:class:`Same` of many draws: which of them have gone this way so far."""

    truth: bool  # any number but 0 counts as True
    expected: Any

    def __call__(self, value: Tensor, going: Tensor | None = None) -> Tensor:
        value = value.flatten()
        same = ((value != 0) if self.truth else value) == self.expected
        if going is not None:
            same &= going
        if not bool(same.any()):
            raise Departed("no draw goes this way")
        return same

    @classmethod
    def of(cls, check: Same) -> "SameInEach | None":
        """The same check of many draws; None if there is no such thing."""
        name = op_name(check.func)
        if name not in ("_local_scalar_dense", "item", "is_nonzero"):
            return None
        return cls(name == "is_nonzero", check.expected)


@dataclass(frozen=True)
class SameShape:
    """A tensor whose values decide its shape has the same shape."""

    expected: tuple[int, ...]

    def __call__(self, tensor: Tensor) -> None:
        if tuple(tensor.shape) != self.expected:
            raise Departed(f"shape {tuple(tensor.shape)}, not {self.expected}")


@dataclass(frozen=True, eq=False)
class SameValues:
    """A tensor has the same values."""

    expected: Tensor

    def __call__(self, tensor: Tensor) -> None:
        if not torch.equal(tensor, self.expected):
            raise Departed("other values")


def _same(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and math.isnan(found):
        return isinstance(expected, float) and math.isnan(expected)
    return type(found) is type(expected) and bool(found == expected)
