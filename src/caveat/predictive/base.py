"""The waist: what every predictive answers, however it was made.

Everything upstream makes a :class:`Predictive`, everything downstream reads one and
asks at most on which side it stands, :class:`RegressionPredictive` or
:class:`ClassificationPredictive`. ``tests/predictive/test_contract.py`` holds every
kind to every promise.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from caveat import _validation
from caveat._optional import require
from caveat._random import Seed, as_seed
from caveat._summary import Summarised, TextSummary
from caveat.errors import DrawsNotKeptError, ParameterError, ShapeError

DRAWS_FIRST = {"rows": 1}  # metadata of a field whose rows are its second axis


@dataclass(frozen=True, eq=False, repr=False)
class Predictive(Summarised):
    """A prediction with its uncertainty, for a batch of rows.

    It is a value: nothing can be assigned to it, and no gradient passes through it. A
    subclass is a frozen dataclass whose tensor fields have rows first (or second, if
    marked ``DRAWS_FIRST``) and whose other fields are the same for all rows; selecting
    and joining rows then work for it as they are. A field may be a predictive of the
    same rows.

    Attributes
    ----------
    n_draws : int
        Number of draws behind the answer; 0 if nothing was sampled.
    """

    n_draws: int

    @property
    @abstractmethod
    def mean_error(self) -> Tensor:
        """Monte Carlo standard error of ``mean``, or of ``probs`` (ledger E4).

        It is 0 where nothing was sampled, and infinite for a single draw. Of stratified
        draws it is smaller, by a factor that all rows of a call tell together: it
        depends on which rows were asked for, but not on how they are batched. It is
        worked out when it is first asked for.
        """

    @property
    def draws(self) -> Tensor:
        """What the draws said, draws first, if they were kept.

        Outputs of shape (draws, batch, *event), or logits of shape (draws, batch,
        *extra, classes). Without them, a :class:`~caveat.errors.DrawsNotKeptError`.
        """
        raise DrawsNotKeptError(
            f"A {type(self).__name__} with n_draws={self.n_draws} holds no draws. "
            f"MCDropout.regress and .classify make predictives with draws."
        )

    @abstractmethod
    def log_prob(self, y: Any) -> Tensor:
        """Log density, or log probability, of what was observed.

        Parameters
        ----------
        y : array or Tensor
            Values of the shape of the mean, or class numbers, shape (batch, *extra).

        Returns
        -------
        Tensor, shape (batch,) or (batch, *extra)
            One for each row; of a regression jointly over its outputs.
        """

    def sample(self, n_observations: int, *, seed: Seed = None) -> Tensor:
        """New observations of every row.

        Each row is sampled on its own: what rows have in common is in ``draws`` only.

        Parameters
        ----------
        n_observations : int
            How many of each row.
        seed : int, torch.Generator or None
            The same seed gives the same observations.

        Returns
        -------
        Tensor, shape (n_observations, batch, *event)
            Values, jointly over the event; or class numbers, (n_observations, batch,
            *extra).
        """
        number = _validation.positive_int("n_observations", n_observations)
        return self._sample(number, as_seed(seed))

    @abstractmethod
    def _sample(self, number: int, seed: int) -> Tensor:
        """What ``sample`` returns; the seed is fixed."""

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

    def _with(self, **changes: Any) -> Self:
        """As ``dataclasses.replace``, at a tenth of its price: nothing is checked."""
        found = object.__new__(type(self))
        found.__dict__.update(self.__dict__, **changes)
        return found

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
        own = self._settled()
        chosen: dict[str, Any] = {
            name: value[:, rows] if axis else value[rows]
            for name, value, axis in own._row_fields()
        }
        return replace(own, **chosen)

    def __iter__(self) -> Iterator[Self]:
        """Predictives of one row each."""
        return (self[row] for row in range(len(self)))

    @classmethod
    def concatenate(cls, parts: Sequence[Self]) -> Self:
        """Join predictives along rows.

        Parameters
        ----------
        parts : sequence of Predictive
            All of one kind, with the same number of draws and the same outputs, made
            in the same way, and with their draws kept in all or in none.

        Returns
        -------
        Predictive
            Of all rows, in order.
        """
        parts = [part._settled() for part in _validation.instances("parts", parts, cls)]
        _validation.all_equal("n_draws", [part.n_draws for part in parts])
        rows = [list(part._row_fields()) for part in parts]
        _validation.all_equal("kept tensors", [[r[0] for r in row] for row in rows])
        joined: dict[str, Any] = {}
        for same in zip(*rows, strict=True):
            name, _, axis = same[0]
            joined[name] = _joined(name, [value for _, value, _ in same], axis)
        first: Self = parts[0]
        for field in fields(first):
            if field.name not in joined:
                values = [getattr(part, field.name) for part in parts]
                _validation.all_equal(_shown(field.name), values)
        return replace(first, **joined)

    def to(self, device: torch.device | str) -> Self:
        """The same on another device.

        Parameters
        ----------
        device : torch.device or str
            Where its tensors are to be.

        Returns
        -------
        Predictive
            Of the same kind; this very one if all of it is there already.
        """
        wanted = torch.empty(0, device=device).device  # "cuda" is a "cuda:0"
        if all(place == wanted for place in self._devices()):
            return self
        own = self._settled()
        moved = {name: value.to(wanted) for name, value, _ in own._row_fields()}
        return replace(own, **moved)

    def _devices(self) -> Iterator[torch.device]:
        for _, value, _ in self._row_fields():
            if isinstance(value, Predictive):
                yield from value._devices()
            else:
                yield value.device

    def to_numpy(self) -> dict[str, np.ndarray[Any, Any]]:
        """All answers as arrays, rows first, by name (a copy; draws are left out)."""
        return {k: np.array(v.numpy(force=True)) for k, v in self._columns().items()}

    def to_frame(
        self,
        *,
        level: float | None = None,
        index: Any = None,
        classes: Sequence[Any] | None = None,
        backend: str = "pandas",
    ) -> Any:
        """All answers as a table of pandas or polars, one line per row.

        Parameters
        ----------
        level : float, optional
            Of a regression: ``lower`` and ``upper`` are the interval of this level.
        index : sequence, optional
            Names of the rows, such as the index of the frame they came from.
        classes : sequence, optional
            Of a classification: names of the classes, in the order of their numbers.
            ``label`` is then a name, and probabilities are ``probs_NAME``.
        backend : {"pandas", "polars"}
            Whose table. polars has no index: its names become a column ``index``.

        Returns
        -------
        pandas.DataFrame or polars.DataFrame
            A quantity with several outputs has a column for each: ``mean_0``,
            ``mean_1``, … (``probs_2_0`` is the entry [2, 0] of its event).
        """
        _validation.one_of("backend", backend, ("pandas", "polars"))
        arrays = self.to_numpy() | self._interval_columns(level)
        columns: dict[str, Any] = {}
        for name, array in arrays.items():
            places = list(product(*map(range, array.shape[1:])))
            flat = array.reshape(len(array), len(places))
            for column, place in enumerate(places):
                suffix = "".join(f"_{i}" for i in place) if len(places) > 1 else ""
                columns[name + suffix] = flat[:, column]
        columns = self._named_classes(columns, classes)
        if index is not None and not hasattr(index, "__len__"):
            index = list(index)
        if index is not None and len(index) != len(self):
            raise ShapeError(
                f"index must name each of the {len(self)} rows. Got {len(index)} names."
            )
        if backend == "polars":
            names = {} if index is None else {"index": np.fromiter(index, object)}
            return _polars(names | columns)
        return require("pandas", extra="report").DataFrame(columns, index=index)

    def _interval_columns(self, level: float | None) -> dict[str, Any]:
        """``lower`` and ``upper``, if they are asked for."""
        if level is not None:
            raise ParameterError(
                f"level is for the intervals of a regression, and this is a "
                f"{type(self).__name__}. Leave it out; caveat.decisions.conformal "
                f"gives sets of classes."
            )
        return {}

    def _named_classes(
        self, columns: dict[str, Any], classes: Sequence[Any] | None
    ) -> dict[str, Any]:
        """The columns with names in place of class numbers, if there are names."""
        if classes is not None:
            raise ParameterError(
                f"classes is for the names of a classification, and this is a "
                f"{type(self).__name__}. Leave it out."
            )
        return columns

    @abstractmethod
    def plot(self, *args: Any, **style: Any) -> Any:
        """Draw it; needs matplotlib, the extra ``[plot]``."""

    def summary(self) -> TextSummary:
        shown = self._highlights() if len(self) else {}
        facts = {name: _spread(values) for name, values in shown.items()}
        facts |= self._facts() if len(self) else {}
        return TextSummary(f"{type(self).__name__}: {self._headline()}", facts)

    def _facts(self) -> dict[str, str]:
        """What ``summary`` says beyond ``repr``."""
        return {}

    def __repr__(self) -> str:
        shown = self._highlights() if len(self) else {}
        facts = {name: _spread(values) for name, values in shown.items()}
        return str(TextSummary(f"{type(self).__name__}: {self._headline()}", facts))

    def _settled(self) -> Self:
        """The same, with all fields worked out that depend on other rows."""
        return self

    def _row_fields(self) -> Iterator[tuple[str, Any, int]]:
        """Name, value and row axis of each field that has rows."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor | Predictive):
                yield field.name, value, field.metadata.get("rows", 0)


def _polars(columns: dict[str, Any]) -> Any:
    """A table of polars; columns of names are lists, as it takes no objects."""
    frame = require("polars", extra="dev").DataFrame
    own = {
        name: values.tolist() if values.dtype.kind == "O" else values
        for name, values in columns.items()
    }
    return frame(own)


def _joined(name: str, values: Sequence[Any], axis: int) -> Any:
    """Tensors, or predictives, joined along their rows."""
    if isinstance(values[0], Predictive):
        return type(values[0]).concatenate(values)
    shapes = [[*t.shape[:axis], *t.shape[axis + 1 :]] for t in values]
    _validation.all_equal(f"shape of {_shown(name)} without its rows", shapes)
    return torch.cat(list(values), axis)


def _shown(field_name: str) -> str:
    return field_name.removeprefix("_")


def count_of(number: int, noun: str) -> str:
    """``1 row``, ``2 rows``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _spread(values: Tensor) -> str:
    low, middle, high = (
        float(v) for v in (values.min(), values.median(), values.max())
    )
    return f"{middle:.3g} (median), {low:.3g} to {high:.3g}"
