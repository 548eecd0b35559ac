"""Rows of whatever holds rows: arrays, tensors, sparse matrices, data frames."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from caveat.errors import InputTypeError

Rows = NDArray[np.int64]


def n_rows(name: str, X: Any) -> int:
    """How many rows there are; ``name`` is what an error calls X."""
    shape = getattr(X, "shape", None)
    if not shape:
        raise InputTypeError(
            f"{name} must be an array, tensor, sparse matrix or data frame with rows "
            f"first. Got {type(X).__name__}; pass numpy.asarray of it."
        )
    return int(shape[0])


def take(X: Any, rows: Rows) -> Any:
    """The rows of these numbers, in this order, in the kind that X is.

    Parameters
    ----------
    X : array, Tensor, sparse matrix or data frame
        Rows first.
    rows : array of int, shape (chosen,)
        Their numbers.

    Returns
    -------
    The same kind, with ``len(rows)`` rows.
    """
    if isinstance(X, Tensor):
        return X[torch.from_numpy(rows).to(X.device)]
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
