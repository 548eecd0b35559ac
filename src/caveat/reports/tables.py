"""The report on a model file and a table whose outcomes are known."""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from caveat._optional import require
from caveat.predictive import Predictive
from caveat.reports.columns import as_table
from caveat.reports.making import report
from caveat.reports.view import HTMLReport

if TYPE_CHECKING:
    from caveat.frames import Dialect, FrameModel

_KEPT = 2**26  # draws of all rows that are kept at once
_FEWEST = 64  # draws of a row, whatever it costs
_AT_ONCE = 2**14  # rows whose draws are made at once


def report_table(
    model: "FrameModel",
    table: Any,
    *,
    dialect: "Dialect | None" = None,
    n_draws: int | None = None,
    seed: int = 0,
    unseen: str = "error",
    title: str | None = None,
    about: Mapping[str, Any] | None = None,
) -> HTMLReport:
    """Predict the rows of a table, and report on what became of it.

    Parameters
    ----------
    model : FrameModel
        Fitted, with all that is attached to it.
    table : str, Path or table
        A file, or a table in memory; with the target. Its rows must not have been
        learned from.
    dialect : Dialect, optional
        Where the name of a file does not say all.
    n_draws : int, optional
        For each row; by default those of the estimator, fewer of so many rows that
        their draws would not fit.
    seed : int, default 0
        Of the draws.
    unseen : {"error", "missing"}
        What a category is that fit has not seen.
    title : str, optional
        Of the page.
    about : mapping of str, optional
        Further lines on how it was made.

    Returns
    -------
    HTMLReport
    """
    require("pyarrow", extra="files")
    from caveat.frames import Encoder, open_table
    from caveat.frames.reading import as_source

    if isinstance(table, str) or hasattr(table, "__fspath__"):
        with open_table(table, dialect) as opened:
            source = opened
            rows = opened.whole()
    else:
        source = as_source(table)
        rows = source.whole()
    again = replace(source, _batches=lambda columns: iter(rows.to_batches()))
    y = model.targets(again)
    if model.is_classifier:
        y = np.array(model.classes, dtype=object)[y]
    encoder = Encoder(model.schema, unseen=unseen)
    x = encoder.matrix(rows, source.name, delimiter=source.delimiter)
    number = n_draws or min(_usual(model), max(_FEWEST, _KEPT // len(rows)))
    predictive = _predictive(model, x, number, seed)
    target = model.schema.target
    facts = {
        "model": repr(model),
        "columns": "; ".join(model.schema.lines()),
        "table": f"{source.name}, {len(rows):,} rows, SHA-256 of its features "
        f"{hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()[:16]}",
        **({"filled in": "; ".join(encoder.sentences())} if encoder.notes else {}),
        "seed": seed,
        "target": target.name,
        **({"unit": target.unit} if target.unit else {}),
        **(about or {}),
    }
    columns = as_table(_columns(model, rows, x), len(rows))
    return report(
        predictive,
        y,
        x=replace(columns, first_row=1 if source.format else 0),
        title=title,
        classes=model.classes or None,
        about=facts,
    )


def _usual(model: "FrameModel") -> int:
    estimator = getattr(model.estimator, "best_estimator_", model.estimator)
    found = getattr(estimator, "n_draws", 400)
    return int(found)


def _predictive(
    model: "FrameModel", x: NDArray[np.float64], number: int, seed: int
) -> Predictive:
    parts = [
        model.predictive_of(x[start : start + _AT_ONCE], n_draws=number, seed=seed)
        for start in range(0, len(x), _AT_ONCE)
    ]
    return parts[0] if len(parts) == 1 else type(parts[0]).concatenate(parts)


def _columns(
    model: "FrameModel", rows: Any, x: NDArray[np.float64]
) -> dict[str, NDArray[Any]]:
    """The columns that the model uses, with gaps where values were missing."""
    from caveat.frames.schema import CATEGORY, TIME
    from caveat.frames.values import Place, Spelling, as_texts, labels

    spelling = Spelling(model.schema.missing, model.schema.decimal)
    found: dict[str, NDArray[Any]] = {}
    start = 0
    for column in model.schema.columns:
        own = x[:, start : start + len(column.features)]
        start += len(column.features)
        if column.kind == CATEGORY:
            texts = as_texts(rows.column(column.name), spelling)
            known = labels(texts, Place("", column.name)).to_pylist()
            found[column.name] = np.array(known, dtype=object)
            continue
        values = own[:, 0].copy()
        if column.n_missing:
            values[own[:, -1] == 1.0] = np.nan
        found[column.name] = _as_dates(values) if column.kind == TIME else values
    return found


def _as_dates(days: NDArray[np.float64]) -> NDArray[Any]:
    """Days since 1970, as they are read."""
    seconds = np.where(np.isnan(days), 0.0, np.rint(days * 86_400.0))
    found = seconds.astype("datetime64[s]")
    found[np.isnan(days)] = np.datetime64("NaT")
    return found
