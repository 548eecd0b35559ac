"""Labels of classes as their numbers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d

from caveat.errors import ParameterError, ShapeError


def label_numbers(classes: NDArray[Any], y: Any, n_rows: int) -> NDArray[np.int64]:
    """The place of each label in the sorted ``classes``.

    Parameters
    ----------
    classes : array, shape (classes,)
        All labels that there are, sorted.
    y : array, shape (rows,)
        Labels.
    n_rows : int
        How many there must be.

    Returns
    -------
    array of int64, shape (rows,)

    Examples
    --------
    >>> label_numbers(np.array(["no", "yes"]), ["yes", "no", "yes"], 3)
    array([1, 0, 1])
    """
    labels = column_or_1d(y)
    if len(labels) != n_rows:
        raise ShapeError(f"y must have one label per row, {n_rows}. Got {len(labels)}.")
    unknown = sorted(set(labels.tolist()) - set(classes.tolist()), key=str)
    if unknown:
        raise ParameterError(
            f"y must hold labels seen in fit. Got {unknown[:5]} beside them."
        )
    return np.searchsorted(classes, labels)
