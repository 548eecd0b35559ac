"""Tables as scikit-learn checks them, and what it leaves unchecked."""

import math
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_X_y
from sklearn.utils import validation as sklearn_validation

from caveat.errors import LONGEST, ParameterError

_LARGEST = 1e150  # whose square is still a number
_LEAST = 1e-150  # the same of a spread
_MISSING = """Input X contains NaN: missing values are not accepted. Impute them first:
make_pipeline(SimpleImputer(), {name}()), of sklearn.pipeline and sklearn.impute; or
drop those rows."""

_MIXED = """X must hold numbers, and column {column} does not. Texts, categories, dates
and times are taken by FrameModel.fit(table, target=..., estimator={name}()), of
caveat.frames; or encode them, say by make_column_transformer of sklearn.compose."""


def _not_numbers(table: Any) -> str | None:
    """A column of a data frame that holds texts, categories, dates or times."""
    if not (hasattr(table, "iloc") and hasattr(table, "columns")):
        return None
    for name, kind in zip(table.columns, table.dtypes, strict=True):
        if kind.kind not in "biufcO" or hasattr(kind, "categories"):
            return f"{name!r} ({kind})"
        if kind.kind == "O" and any(isinstance(v, str) for v in table[name].head()):
            return f"{name!r} (texts)"
    return None


def validate_data(estimator: Any, *tables: Any, **settings: Any) -> Any:
    """``sklearn.utils.validation.validate_data``, in short words and a finite range.

    Parameters
    ----------
    estimator : BaseEstimator
        Whose table it is.
    *tables
        X, or X and y.
    **settings
        As scikit-learn takes them.

    Returns
    -------
    X, or X and y
    """
    if len(tables) > 1:
        _check_targets(tables[1], is_number=settings.get("y_numeric", False))
    try:
        check = sklearn_validation.validate_data
        return _checked(check, estimator, *tables, **settings)
    except (ValueError, TypeError) as error:
        name = type(estimator).__name__
        if "Input X contains NaN" in str(error):
            raise ParameterError(_MISSING.format(name=name)) from error
        column = _not_numbers(tables[0])
        if column is None:
            raise
        raise ParameterError(_MIXED.format(column=column, name=name)) from error


def validate_pair(X: Any, y: Any, **settings: Any) -> Any:
    """``sklearn.utils.check_X_y``, in short words and a finite range."""
    return _checked(check_X_y, X, y, **settings)


def _checked(check: Any, *given: Any, **settings: Any) -> Any:
    try:
        found = check(*given, **settings)
    except ValueError as error:
        if len(str(error)) <= LONGEST:
            raise
        raise ParameterError(str(error)) from error
    for name, table in zip(
        "Xy", found if isinstance(found, tuple) else [found], strict=False
    ):
        _in_range(name, table)
    return found


def _check_targets(y: Any, *, is_number: bool) -> None:
    """Dates would be large numbers in silence, and gaps in labels fail anywhere."""
    values = np.asarray(y)
    if is_number and values.dtype.kind in "mM":
        raise ParameterError(
            "y must hold numbers, and holds dates or times. Make numbers of them, such "
            "as days: (y - y.min()) / numpy.timedelta64(1, 'D')."
        )
    if values.dtype.kind != "O" or not values.ndim:
        return
    has_texts = any(isinstance(value, str) for value in values.ravel())
    for row, value in enumerate(values.ravel()):
        is_nan = has_texts and isinstance(value, float) and math.isnan(value)
        if value is None or is_nan or type(value).__name__ in ("NAType", "NaTType"):
            raise ParameterError(
                f"y must hold a value in every row, and holds {value!r} in row {row}, "
                f"counted from 0. Drop those rows."
            )


def _in_range(name: str, table: Any) -> None:
    """Squares are taken of all numbers: larger ones would be infinite in silence."""
    values = table.data if sparse.issparse(table) else np.asarray(table)
    if values.dtype.kind != "f" or not values.size:
        return
    if name == "y":
        spread = np.ptp(values, axis=0)
        if ((spread > 0.0) & (spread < _LEAST)).any():
            raise ParameterError(
                f"The numbers in y must differ by at least {_LEAST:g}, as differences "
                f"are squared. Got {float(np.max(spread)):.3g}; multiply them."
            )
    largest = float(np.abs(values).max())
    if largest > _LARGEST:
        raise ParameterError(
            f"The numbers in {name} must be at most {_LARGEST:g} in size, as they are "
            f"squared. Got {largest:.3g}; divide by their scale."
        )
