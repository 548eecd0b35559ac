"""The numbers of figure 4, one per row of the CSV file."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Number:
    """One number about one network.

    Attributes
    ----------
    seed : int
        Of the network.
    part : str
        Which table it belongs to.
    case : str
        The row of the table: a way to predict, an angle, a share, a data set.
    name : str
        What was measured.
    value : float
    """

    seed: int
    part: str
    case: str
    name: str
    value: float


@dataclass(frozen=True)
class Numbers:
    """Numbers to be looked up.

    Attributes
    ----------
    all : tuple of Number
    """

    all: tuple[Number, ...]

    @classmethod
    def of(cls, numbers: Sequence[Number]) -> "Numbers":
        """Those numbers."""
        return cls(tuple(numbers))

    @property
    def seeds(self) -> list[int]:
        """Of the networks."""
        return sorted({number.seed for number in self.all})

    def cases(self, part: str) -> list[str]:
        """The rows of a table, in order."""
        return list(dict.fromkeys(n.case for n in self.all if n.part == part))

    def values(self, part: str, case: str, name: str) -> list[float]:
        """One value per network."""
        wanted = (part, case, name)
        return [n.value for n in self.all if (n.part, n.case, n.name) == wanted]

    def mean(self, part: str, case: str, name: str) -> float:
        """The average over networks."""
        return float(np.mean(self.values(part, case, name)))

    def first(self, part: str, case: str, name: str) -> float:
        """That of the first network."""
        return self.values(part, case, name)[0]
