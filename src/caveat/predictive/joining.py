"""Predictives of parts of the rows as one, without a second copy of their draws."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from torch import Tensor

from caveat._memory import give_back
from caveat.errors import CaveatError
from caveat.predictive.categorical import CategoricalPredictive
from caveat.predictive.gaussian import GaussianPredictive

Kind = TypeVar("Kind", GaussianPredictive, CategoricalPredictive)

_AT_ONCE = 1 << 18  # numbers whose moments are taken together, or
_MOST_SLICES = 256  # so many slices
_TIDY_EVERY = 16  # slices, between whose answers lies what was freed on the way


def by_rows(draws: Tensor, make: Callable[[slice], Kind]) -> Kind:
    """The predictive of draws (draws, batch, *event), made for some rows at a time.

    What is summed on the way is several times as large as the answer, so it is summed
    for a slice of the rows. ``make`` gets the slice.
    """
    numbers, rows = draws.numel(), draws.shape[1] if draws.dim() > 1 else 0
    if numbers <= _AT_ONCE or rows < 2:
        return make(slice(0, rows))
    size = math.ceil(rows * max(_AT_ONCE / numbers, 1 / _MOST_SLICES))
    try:
        parts = []
        for start in range(0, rows, size):
            parts.append(replace(make(slice(start, start + size)), _draws=None))
            if len(parts) % _TIDY_EVERY == 0:
                give_back()
    except CaveatError:
        make(slice(0, rows))  # to speak of all rows, not of a slice
        raise
    return replace(type(parts[0]).concatenate(parts), _draws=draws.detach())


def of_rows(draws: Tensor, rows: slice) -> Tensor:
    """Draws of some rows; all of them are not sliced, which would be an operation."""
    if rows.start or rows.stop < draws.shape[1]:
        return draws[:, rows]
    return draws


def together(parts: Sequence[Any]) -> Any:
    """Predictives of batches as one; each may have a number of draws of its own.

    Then ``n_draws`` is the smallest, and every row keeps its error.
    """
    least = min(part.n_draws for part in parts)
    if any(part.n_draws > least for part in parts):
        parts = [
            replace(part, n_draws=least, _mean_error=part.mean_error) for part in parts
        ]
    return type(parts[0]).concatenate(parts)
