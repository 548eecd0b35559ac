"""What every predictive can answer, however it was made."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor

from caveat import _validation
from caveat._optional import require

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped, unused-ignore]

DRAWS_FIRST = {"rows": 1}  # metadata of a field whose rows are its second axis


@dataclass(frozen=True, eq=False, repr=False)
class Predictive(ABC):
    """A prediction with its uncertainty, for a batch of rows.

    It is a value: nothing can be assigned to it. A subclass is a frozen dataclass
    whose tensor fields have rows first (or second, if marked ``DRAWS_FIRST``);
    selecting and joining rows then work for it as they are.

    Attributes
    ----------
    n_draws : int
        Number of draws behind the answer; 0 if it is exact.
    """

    n_draws: int

    @abstractmethod
    def __len__(self) -> int:
        """Number of rows."""

    @abstractmethod
    def _columns(self) -> dict[str, Tensor]:
        """The answers, rows first, by name."""

    @abstractmethod
    def _headline(self) -> str:
        """Rows, outputs and draws in a few words."""

    @abstractmethod
    def _highlights(self) -> dict[str, Tensor]:
        """What ``repr`` shows the spread of."""

    def __getitem__(self, index: Any) -> Self:
        """Choose rows; the batch axis always stays.

        Parameters
        ----------
        index : int, slice, mask or sequence of int
            ``predictive[3]`` is a predictive of one row, as ``predictive[3:4]`` is.
            A mask has one bool per row; it may choose no row at all.

        Returns
        -------
        Predictive
            Of the same kind; a slice shares the memory of the original.
        """
        rows = _validation.row_index(index, len(self))
        chosen: dict[str, Any] = {
            name: value[:, rows] if axis else value[rows]
            for name, value, axis in self._row_tensors()
        }
        return replace(self, **chosen)

    def __iter__(self) -> Iterator[Self]:
        """Predictives of one row each."""
        return (self[row] for row in range(len(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join predictives along rows.

        Parameters
        ----------
        parts : sequence of Predictive
            All of one kind, with the same number of draws and the same outputs,
            and with their draws kept in all or in none.

        Returns
        -------
        Predictive
            Of all rows, in order.
        """
        parts = _validation.instances("parts", parts, cls)
        _validation.all_equal("n_draws", [part.n_draws for part in parts])
        rows = [list(part._row_tensors()) for part in parts]
        _validation.all_equal("kept tensors", [[r[0] for r in row] for row in rows])
        joined: dict[str, Any] = {}
        for same in zip(*rows, strict=True):
            name, _, axis = same[0]
            shapes = [[*t.shape[:axis], *t.shape[axis + 1 :]] for _, t, _ in same]
            _validation.all_equal(f"shape of {name} without its rows", shapes)
            joined[name] = torch.cat([tensor for _, tensor, _ in same], axis)
        first: Self = parts[0]
        return replace(first, **joined)

    def to_numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """All answers as arrays, rows first, by name (a copy; draws are left out)."""
        return {k: np.array(v.numpy(force=True)) for k, v in self._columns().items()}

    def to_frame(self) -> "pd.DataFrame":
        """All answers as a pandas table, one line per row.

        Returns
        -------
        pandas.DataFrame
            A quantity with several outputs has a column for each: ``mean_0``,
            ``mean_1``, … (``probs_2_0`` is the entry [2, 0] of its event).
        """
        pandas = require("pandas", extra="report")
        columns = {}
        for name, array in self.to_numpy().items():
            places = list(product(*map(range, array.shape[1:])))
            flat = array.reshape(len(array), len(places))
            for column, place in enumerate(places):
                suffix = "".join(f"_{i}" for i in place) if len(places) > 1 else ""
                columns[name + suffix] = flat[:, column]
        frame: pd.DataFrame = pandas.DataFrame(columns)
        return frame

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}: {self._headline()}"]
        shown = self._highlights() if len(self) else {}
        width = max(map(len, shown), default=0)
        lines += [f"  {name:<{width}}  {_spread(v)}" for name, v in shown.items()]
        return "\n".join(lines)

    def _row_tensors(self) -> Iterator[tuple[str, Tensor, int]]:
        """Name, value and row axis of each field that has rows."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                yield field.name, value, field.metadata.get("rows", 0)


def count_of(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _spread(values: Tensor) -> str:
    low, middle, high = (
        float(v) for v in (values.min(), values.median(), values.max())
    )
    return f"{middle:.3g} (median), {low:.3g} to {high:.3g}"
