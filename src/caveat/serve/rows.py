"""Rows by the names of their columns, and answers by name: for people with curl."""

import math
from typing import Any

import numpy as np

from caveat.serve.answers import LEVELS, QUANTILES, Arrays, RowFeatures
from caveat.serve.models import ServedModel
from caveat.serve.refusing import quoted, refuse

ROWS = "rows"


def read_rows(
    plain: dict[str, Any], model: ServedModel, most: int
) -> tuple[RowFeatures, dict[str, Any]]:
    """RowFeatures of the rows of a request, and its parameters.

    Parameters
    ----------
    plain : dict
        ``rows``, and parameters beside it.
    model : ServedModel
        That is asked.
    most : int
        Rows that are allowed.

    Returns
    -------
    RowFeatures, dict
    """
    rows = plain.get(ROWS)
    if not isinstance(rows, list) or not 1 <= len(rows) <= most:
        refuse(
            f"rows must be a list of 1 to {most} rows, as [{quoted(model.example)}]. "
            f"Got {quoted(rows)}."
        )
    parameters = {name: value for name, value in plain.items() if name != ROWS}
    return model.features_of_rows(rows), parameters


def told(model: ServedModel, found: Arrays) -> list[dict[str, Any]]:
    """Answers, a dict for each row.

    Parameters
    ----------
    model : ServedModel
        That answered.
    found : dict of str to array
        Outputs.

    Returns
    -------
    list of dict
        Of classes by their names.
    """
    columns = {name: values.tolist() for name, values in found.items()}
    for name in ("probs", "mc_error"):
        if model.is_classifier and name in columns:
            columns[name] = [
                dict(zip(model.classes, row, strict=True)) for row in columns[name]
            ]
    if QUANTILES in columns and columns[QUANTILES] and columns[QUANTILES][0]:
        columns[QUANTILES] = [
            [list(pair) for pair in zip(LEVELS, row, strict=True)]
            for row in columns[QUANTILES]
        ]
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


def worst_error(model: ServedModel, found: Arrays) -> float:
    """The largest Monte Carlo error, in spreads of its row."""
    if model.is_classifier:
        probs = found["probs"]
        scale = np.sqrt(probs * (1.0 - probs))
    else:
        scale = found["std"]
    error = found["mc_error"]
    parts = np.divide(error, scale, out=np.zeros_like(error), where=error > 0.0)
    worst = float(parts.max())
    return worst if math.isfinite(worst) else 1e9
