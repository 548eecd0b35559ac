"""Normal numbers of a part of a pool, by address: a graph elsewhere makes the same."""

from collections.abc import Sequence
from typing import Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray

from caveat._random import signed
from caveat.sampling.noise import NoiseSpec, Normal

Array = NDArray[np.float64]


class NormalSource(Protocol):
    """Whatever draws standard normal numbers; a numpy generator does."""

    def standard_normal(self, size: Any) -> Any:
        """An array of this shape, its first axis draws."""
        ...


@final
class AddressedNormals:
    """Numbers that depend on the seed, the draw and their place, as those of a site.

    Parameters
    ----------
    seed : int
        Of the part.
    turns : int
        Networks that take turns at the draws, whose numbers are made together.
    """

    def __init__(self, seed: int, turns: int = 1) -> None:
        self._seed, self._turns, self._asked = signed(seed), turns, 0

    def standard_normal(self, size: Sequence[int]) -> Array:
        """Of shape (draws, ...); other numbers each time it is asked."""
        n_draws, *shape = size
        made = range(-(-n_draws // self._turns))
        spec = NoiseSpec(
            f"#{self._asked}",
            Normal(),
            (1, self._turns, *shape),  # the first axis is that of rows, which share it
            torch.float64,
            torch.device("cpu"),
            stratified=True,
        )
        self._asked += 1
        found = spec.sample(self._seed, made).reshape(-1, *shape)
        return np.asarray(found[:n_draws].numpy())
