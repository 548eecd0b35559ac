"""Answers for rows: in pieces that fit into memory, with draws as settings say."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from caveat.serve.answers import Arrays, arrays, is_enough
from caveat.serve.asking import Settings
from caveat.serve.models import ServedModel

_AT_ONCE = 2**22  # numbers drawn at once
# A network that is met with another number of rows is recorded anew, which takes far
# longer than the answer, and few sizes are remembered.
SIZES = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)


def answer(
    model: ServedModel,
    x: NDArray[np.generic],
    settings: Settings,
    wanted: Collection[str],
) -> Arrays:
    """The outputs of some rows.

    Parameters
    ----------
    model : ServedModel
        That answers.
    x : array, shape (rows, …)
        Checked features.
    settings : Settings
        With a number of draws, or a tolerance.
    wanted : collection of str
        Names of outputs.

    Returns
    -------
    dict of str to array
        What a row is answered does not depend on the others.
    """
    if settings.tolerance is not None:
        return _until_enough(model, x, settings, wanted)
    number = settings.n_draws or model.n_draws
    width = max(1, len(model.classes))
    for info in model.outputs[:1]:
        width = max(width, int(np.prod([n for n in info.shape if n > 0])))
    size = max(1, _AT_ONCE // (number * width))
    parts = []
    for start in range(0, len(x), size):
        rows = x[start : start + size]
        own = model.predictive(padded(model, rows), number, settings.seed)
        parts.append(_of_rows(arrays(model, own, settings.level, wanted), len(rows)))
    if len(parts) == 1:
        return parts[0]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _until_enough(
    model: ServedModel,
    x: NDArray[np.generic],
    settings: Settings,
    wanted: Collection[str],
) -> Arrays:
    """Each row for itself draws more, until its own error is small."""
    left, found = np.arange(len(x)), Arrays()
    size = 256
    for number in settings.ladder():
        fine = np.zeros(len(left), dtype=bool)
        for start in range(0, len(left), size):
            rows = left[start : start + size]
            asked = model.predictive(padded(model, x[rows]), number, settings.seed)
            own = _of_rows(arrays(model, asked, settings.level, wanted), len(rows))
            for name, values in own.items():
                if name not in found:
                    shape = (len(x), *values.shape[1:])
                    found[name] = np.empty(shape, values.dtype)
                found[name][rows] = values
            enough = is_enough(asked, settings.tolerance or 0.0)
            fine[start : start + size] = enough[: len(rows)]
        left = left[~fine]
        if not len(left):
            break
    return found


def padded(model: ServedModel, x: NDArray[Any]) -> NDArray[Any]:
    """Rows as many as the model has met before, the last of them over and over.

    Parameters
    ----------
    model : ServedModel
        That answers.
    x : array, shape (rows, …)
        Checked features.

    Returns
    -------
    array
        As it is, if sizes are all the same to the model, or it is a large one.
    """
    if not model.remembers_sizes:
        return x
    size = next((size for size in SIZES if size >= len(x)), len(x))
    if size == len(x):
        return x
    return np.concatenate([x, np.repeat(x[-1:], size - len(x), 0)])


def _of_rows(found: Arrays, count: int) -> Arrays:
    """Without the rows that were put in."""
    return {name: values[:count] for name, values in found.items()}
