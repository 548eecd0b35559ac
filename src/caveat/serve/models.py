"""Models as a server sees them: what goes in, what comes out, and how."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from caveat import _validation as check
from caveat.errors import CaveatError, InputTypeError, ParameterError
from caveat.predictive import ClassificationPredictive
from caveat.sampling import MCDropout
from caveat.serve.answers import RowFeatures, class_outputs, number_outputs
from caveat.serve.refusing import quoted, refuse
from caveat.serve.tensors import BYTES, TYPES, TensorInfo

if TYPE_CHECKING:
    from caveat.frames import FrameModel

Inputs = Mapping[str, NDArray[Any]]
_DRAWS = 100  # of a network, if not told otherwise
_MOST_NOTES = 20  # of columns that are not used


class ServedModel(ABC):
    """A model behind a name.

    Attributes
    ----------
    kind : {"regression", "classification"}
    inputs, outputs : tuple of TensorInfo
    classes : tuple of str
        Names of the classes.
    n_draws : int
        Draws if a request does not say.
    """

    kind: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    classes: tuple[str, ...] = ()
    n_draws: int = _DRAWS

    @abstractmethod
    def features(self, given: Inputs) -> RowFeatures:
        """What tensors of the protocol say, checked; of one row at least."""

    @abstractmethod
    def features_of_rows(self, rows: list[Any]) -> RowFeatures:
        """What rows of JSON say, checked."""

    @abstractmethod
    def predictive(self, x: NDArray[Any], n_draws: int, seed: int) -> Any:
        """Of some rows; what a row is answered depends on that row alone."""

    def deferred(self, predictive: Any) -> NDArray[np.bool_]:
        """Which rows are handed on."""
        return np.zeros(len(predictive), dtype=bool)

    def sets(self, predictive: Any) -> NDArray[Any] | None:
        """Conformal sets as texts, if there are any."""
        return None

    @property
    def defers(self) -> bool:
        """Whether a policy may hand rows on; else ``deferred`` is never true."""
        return False

    @property
    def remembers_sizes(self) -> bool:
        """Whether batches of a size that was met before are answered faster."""
        return False

    @property
    def is_classifier(self) -> bool:
        """Whether classes are predicted."""
        return self.kind == "classification"

    @property
    def form(self) -> list[dict[str, Any]]:
        """What a person fills in: name and kind of each column."""
        return [{"name": i.name, "kind": i.datatype} for i in self.inputs]

    @property
    def example(self) -> Any:
        """A row of JSON that the model takes."""
        return [0.0]

    @property
    @abstractmethod
    def row_schema(self) -> dict[str, Any]:
        """Rows of JSON that the model takes, as a JSON schema."""


@final
class TableModel(ServedModel):
    """A FrameModel: rows by the names of their columns.

    Parameters
    ----------
    model : FrameModel
    """

    def __init__(self, model: "FrameModel") -> None:
        self.model = model
        schema = model.schema
        self.kind = "classification" if model.is_classifier else "regression"
        kinds = {"number": "FP64", "boolean": "BOOL"}
        self.inputs = tuple(
            TensorInfo(column.name, kinds.get(column.kind, BYTES), (-1,))
            for column in schema.columns
        )
        self.classes = tuple(_label(label) for label in model.classes)
        self._has_sets = model.is_classifier and model.conformal is not None
        self.outputs = (
            class_outputs(len(self.classes), has_sets=self._has_sets)
            if model.is_classifier
            else number_outputs(())
        )
        self.n_draws = _draws_of(model.estimator)

    def features(self, given: Inputs) -> RowFeatures:
        columns: dict[str, list[Any]] = {}
        for name, values in given.items():
            if values.ndim == 2 and values.shape[1] == 1:
                values = values[:, 0]
            if values.ndim != 1:
                refuse(
                    f"{quoted(name)} must have the shape [rows] or [rows, 1]. "
                    f"Got {list(values.shape)}."
                )
            columns[name] = values.tolist()
        known = {column.name for column in self.model.schema.columns}
        for name in columns:
            if name not in known:
                refuse(f"There is no input {quoted(name)}. Known: {quoted(known)}.")
        counts = {len(values) for values in columns.values()}
        if len(counts) != 1:
            refuse("All inputs must have equally many rows.")
        names = list(columns)
        rows = zip(*columns.values(), strict=True)
        return self._encoded([dict(zip(names, row, strict=True)) for row in rows])

    def features_of_rows(self, rows: list[Any]) -> RowFeatures:
        needed = self.model.schema.needed
        others: set[str] = set()
        for number, row in enumerate(rows):
            if not isinstance(row, dict):
                refuse(
                    f"Row {number + 1} must be an object, as "
                    f"{quoted(self.example)}. Got {quoted(row)}."
                )
            for name in needed:
                if name not in row:
                    refuse(
                        f"Row {number + 1}: column {name!r} is not there; say null "
                        f"where it is missing."
                    )
            others |= row.keys() - needed
        found = self._encoded([{name: row[name] for name in needed} for row in rows])
        notes = (f"{quoted(name)} is no column of the model" for name in sorted(others))
        return RowFeatures(found.x, (*found.notes, *islice(notes, _MOST_NOTES)))

    def _encoded(self, rows: list[dict[str, Any]]) -> RowFeatures:
        import pyarrow as pa

        from caveat.frames import Encoder, as_source

        for column in self.model.schema.columns:
            if column.kind == "number":
                _refuse_booleans(column.name, rows)
        encoder = Encoder(self.model.schema)
        try:
            source = as_source(rows, "the request")
            x = encoder.matrix(source.whole(), source.name)
        except CaveatError as error:
            refuse(
                str(error).replace("--unseen missing takes it as missing", "say null")
            )
        except (ValueError, TypeError, ArithmeticError, pa.ArrowException) as error:
            refuse(f"The rows cannot be read: {quoted(str(error))}.")
        notes = (f"{n} rows: {what}" for what, n in encoder.notes.items())
        return RowFeatures(x, tuple(notes))

    def predictive(self, x: NDArray[Any], n_draws: int, seed: int) -> Any:
        return self.model.predictive_of(x, n_draws=n_draws, seed=seed)

    def deferred(self, predictive: Any) -> NDArray[np.bool_]:
        policy = self.model.deferral
        if policy is None:
            return super().deferred(predictive)
        return np.asarray(policy.apply(predictive).deferred, dtype=bool)

    def sets(self, predictive: Any) -> NDArray[Any] | None:
        if not self._has_sets:
            return None
        names = np.array(self.classes, dtype=object)
        found = ["|".join(names[row]) for row in predictive.sets.numpy()]
        return np.array(found, dtype=object)

    @property
    def defers(self) -> bool:
        """Whether a deferral policy is attached."""
        return self.model.deferral is not None

    @property
    def form(self) -> list[dict[str, Any]]:
        """Columns with their kinds, units and categories."""
        return [
            {
                "name": c.name,
                "kind": c.kind,
                "unit": c.unit,
                "categories": list(c.categories[:200]),
                "example": _example(c),
            }
            for c in self.model.schema.columns
        ]

    @property
    def example(self) -> Any:
        """A row of JSON that the model takes."""
        return {c.name: _example(c) for c in self.model.schema.columns}

    @property
    def row_schema(self) -> dict[str, Any]:
        """An object with all columns; others are taken, and noted."""
        columns = self.model.schema.columns
        return {
            "type": "object",
            "required": [c.name for c in columns],
            "properties": {c.name: _column_schema(c) for c in columns},
        }


class _ArrayModel(ServedModel):
    """One input ``x`` of numbers, its first axis rows."""

    shape: tuple[int, ...]  # of a row

    def _take(self, kind: str, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.inputs = (TensorInfo("x", kind, (-1, *shape)),)

    def features(self, given: Inputs) -> RowFeatures:
        if set(given) != {"x"}:
            refuse(f"There must be one input, 'x'. Got {quoted(list(given))}.")
        return self._checked(given["x"])

    def features_of_rows(self, rows: list[Any]) -> RowFeatures:
        try:
            _refuse_other_than_numbers(rows)  # numpy makes numbers of '1' and true
            found = np.array(rows, dtype=np.float64)
        except (ValueError, TypeError, OverflowError):
            refuse(f"Rows must be lists of numbers of the shape {list(self.shape)}.")
        return self._checked(found)

    def _checked(self, x: NDArray[Any]) -> RowFeatures:
        if x.dtype.kind not in "iuf":
            refuse(f"'x' must hold numbers. Got {x.dtype}.")
        if x.shape[1:] != self.shape:
            refuse(
                f"'x' must have the shape {['rows', *self.shape]}. Got {list(x.shape)}."
            )
        with np.errstate(over="ignore"):
            found = x.astype(TYPES[self.inputs[0].datatype], copy=False)
        if not np.isfinite(found).all():
            row = int((~np.isfinite(found)).reshape(len(found), -1).any(1).argmax())
            refuse(f"'x' must hold finite numbers. Row {row + 1} does not.")
        return RowFeatures(found)

    @property
    def example(self) -> Any:
        """A row of JSON that the model takes."""
        return np.zeros(self.shape).tolist()

    @property
    def row_schema(self) -> dict[str, Any]:
        """Lists in lists, of numbers that the input can hold."""
        dtype = TYPES[self.inputs[0].datatype]
        info = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
        bounds = {"minimum": float(info.min), "maximum": float(info.max)}
        found: dict[str, Any] = {"type": "number"} | bounds
        for size in reversed(self.shape):
            sizes = {"minItems": size, "maxItems": size}
            found = {"type": "array", "items": found} | sizes
        return found


@final
class MatrixModel(_ArrayModel):
    """A fitted estimator of Caveat: rows of a matrix.

    Parameters
    ----------
    estimator : estimator
    """

    def __init__(self, estimator: Any) -> None:
        from caveat.frames import FrameModel, Schema, Target

        n_features = int(estimator.n_features_in_)
        classes = getattr(estimator, "classes_", None)
        self.kind = "regression" if classes is None else "classification"
        target = Target("y", "number", classes is not None)
        # Nothing is asked of its columns: it knows how estimators are given draws.
        schema = Schema((), (), target, (), ".", 0, "an estimator")
        self._model = FrameModel(schema, estimator)
        self._take("FP64", (n_features,))
        self.n_draws = _draws_of(estimator)
        if classes is not None:
            self.classes = tuple(_label(label) for label in classes.tolist())
            self.outputs = class_outputs(len(self.classes))
        else:
            first = self.predictive(np.zeros((1, n_features)), 2, 0)
            self.outputs = number_outputs(tuple(first.mean.shape[1:]))

    def predictive(self, x: NDArray[Any], n_draws: int, seed: int) -> Any:
        return self._model.predictive_of(x, n_draws=n_draws, seed=seed)


@final
class NetworkModel(_ArrayModel):
    """A network with dropout, for a server: what it takes, and what its output is.

    Parameters
    ----------
    mc : MCDropout
        Around the network, with ``shared=True``, as an answer must not depend on the
        place of a row in a batch.
    example : Tensor or array, shape (rows, *event)
        An input.
    precision : float, optional
        Of a regression, as for :meth:`caveat.MCDropout.regress`; without it the outputs
        are the logits of a classification.
    classes : sequence of str, optional
        Names of the classes; by default their numbers.
    n_draws : int, default 100
        Draws if a request does not say.

    Examples
    --------
    >>> import caveat, torch
    >>> from torch import nn
    >>> net = nn.Sequential(nn.Linear(2, 9), nn.Dropout(0.1), nn.Linear(9, 3))
    >>> served = NetworkModel(caveat.MCDropout(net, seed=0), torch.zeros(1, 2))
    >>> served.kind, served.classes
    ('classification', ('0', '1', '2'))
    """

    def __init__(
        self,
        mc: MCDropout,
        example: Any,
        *,
        precision: float | None = None,
        classes: Sequence[str] | None = None,
        n_draws: int = _DRAWS,
    ) -> None:
        if not isinstance(mc, MCDropout):
            raise InputTypeError(f"mc must be an MCDropout. Got {type(mc).__name__}.")
        if not mc._sampler.shared:
            raise ParameterError(
                "mc must have shared=True: with noise for each row, an answer depends "
                "on the place of a row among the others."
            )
        self._mc = mc
        self._precision = precision
        self.n_draws = check.several("n_draws", n_draws)
        x = torch.as_tensor(np.asarray(example))
        self._dtype = x.dtype
        self._take(_datatype(x.numpy().dtype), tuple(x.shape[1:]))
        self.kind = "regression" if precision is not None else "classification"
        found = self.predictive(x[:1].numpy(), 2, 0)
        if isinstance(found, ClassificationPredictive):
            count = int(found.probs.shape[-1])
            names = range(count) if classes is None else classes
            self.classes = tuple(str(name) for name in names)
            if len(self.classes) != count or found.probs.ndim != 2:
                raise ParameterError(
                    f"classes must be {count} names, and the network must give one "
                    f"row of logits for a row. Got {self.classes} and outputs of the "
                    f"shape {tuple(found.probs.shape)}."
                )
            self.outputs = class_outputs(count)
        else:
            self.outputs = number_outputs(tuple(found.mean.shape[1:]))

    def predictive(self, x: NDArray[Any], n_draws: int, seed: int) -> Any:
        mc, rows = self._seeded(seed), torch.tensor(x, dtype=self._dtype)
        if self._precision is None:
            return mc.classify(rows, n_draws=n_draws, progress=False)
        precision = self._precision
        return mc.regress(rows, precision=precision, n_draws=n_draws, progress=False)

    @property
    def remembers_sizes(self) -> bool:
        """What a network does with some rows is recorded, and then replayed."""
        return True

    def _seeded(self, seed: int) -> MCDropout:
        """Seed 0 is the one that the object came with."""
        if seed == 0:
            return self._mc
        return self._mc.with_seed((self._mc.seed + seed) % 2**63)


def served(model: Any) -> ServedModel:
    """A model as a server sees it.

    Parameters
    ----------
    model : FrameModel, estimator or NetworkModel
        Fitted.

    Returns
    -------
    ServedModel
    """
    if isinstance(model, ServedModel):
        return model
    if isinstance(model, MCDropout):
        raise InputTypeError(
            "An MCDropout does not say what it takes. Give caveat.serve.NetworkModel("
            "mc, example), with precision=… for a regression."
        )
    if hasattr(model, "schema") and hasattr(model, "predictive_of"):
        return TableModel(model)
    if hasattr(model, "predictive") and hasattr(model, "n_features_in_"):
        return MatrixModel(model)
    if isinstance(model, str | os.PathLike):
        raise InputTypeError(
            f"A model to serve must be a model, not the name of a file: give "
            f"caveat.load({os.fspath(model)!r}), or run caveat serve with the file."
        )
    raise InputTypeError(
        f"A model to serve must be a FrameModel, a fitted estimator of Caveat, or a "
        f"caveat.serve.NetworkModel. Got {type(model).__name__}."
    )


def _refuse_other_than_numbers(rows: list[Any]) -> None:
    values = rows
    while list in (kinds := set(map(type, values))):
        values = [v for part in values for v in (part if type(part) is list else ())]
    if not kinds <= {int, float, type(None)}:
        wrong = next(v for v in values if type(v) not in (int, float, type(None)))
        refuse(f"Rows must be lists of numbers. Got {quoted(wrong)} among them.")


def _refuse_booleans(name: str, rows: list[dict[str, Any]]) -> None:
    for number, row in enumerate(rows):
        if type(row.get(name)) is bool:
            refuse(
                f"Row {number + 1}: column {quoted(name)} must hold numbers. "
                f"Got {quoted(row[name])}."
            )


def _draws_of(estimator: Any) -> int:
    best = getattr(estimator, "best_estimator_", estimator)
    return int(getattr(best, "n_draws", 400))


def _label(label: Any) -> str:
    """As CSV has it: true, not True."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _example(column: Any) -> Any:
    if column.kind == "category":
        return column.categories[0] if column.categories else None
    if column.kind == "boolean":
        return bool(column.fill) if column.fill is not None else True
    if column.kind == "time":
        return "2024-05-31T12:00:00Z" if column.has_zone else "2024-05-31"
    return column.fill if column.fill is not None else 0.0


def _column_schema(column: Any) -> dict[str, Any]:
    """Texts are read as those of a CSV file are, and may turn out to be none."""
    kinds = {
        "number": ["number", "string", "null"],
        "time": ["string", "number", "null"],
    }
    return {"type": kinds.get(column.kind, ["string", "number", "boolean", "null"])}


def _datatype(dtype: Any) -> str:
    for name, known in TYPES.items():
        if known == dtype and dtype.kind in "iuf":
            return name
    raise InputTypeError(f"example must hold numbers. Got {dtype}.")
