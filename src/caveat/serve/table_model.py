"""A model of a table behind a server: rows by the names of their columns."""

from itertools import islice
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from caveat.errors import CaveatError
from caveat.serve.answers import RowFeatures, class_outputs, number_outputs
from caveat.serve.models import Inputs, ServedModel, draws_of, label_text
from caveat.serve.refusing import quoted, refuse
from caveat.serve.tensors import BYTES, TensorInfo

if TYPE_CHECKING:
    from caveat.frames import FrameModel

_MOST_NOTES = 20  # of columns that are not used


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
        self.classes = tuple(label_text(label) for label in model.classes)
        self._has_sets = model.is_classifier and model.conformal is not None
        self.outputs = (
            class_outputs(len(self.classes), has_sets=self._has_sets)
            if model.is_classifier
            else number_outputs(())
        )
        self.n_draws = draws_of(model.estimator)

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


def _refuse_booleans(name: str, rows: list[dict[str, Any]]) -> None:
    for number, row in enumerate(rows):
        if type(row.get(name)) is bool:
            refuse(
                f"Row {number + 1}: column {quoted(name)} must hold numbers. "
                f"Got {quoted(row[name])}."
            )


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
