"""How the loss of training rows falls: a few looks at it, with the noise off."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from caveat.training.members import Rows

N_LOOKS = 20
_MOST_ROWS = 500  # so that looking costs little beside learning


class Looks:
    """The losses of one member after equal parts of its steps.

    Parameters
    ----------
    total : int
        Steps that it will take.
    """

    def __init__(self, total: int) -> None:
        self._marks = -(-total * np.arange(1, N_LOOKS + 1) // N_LOOKS)
        self._losses: NDArray[np.float64] = np.full(N_LOOKS, np.nan)
        self._done = 0

    def left(self, step: int) -> int:
        """Steps from ``step`` to the next look; 0 if there is none to come."""
        coming = self._marks[self._marks > step]
        return int(coming[0]) - step if len(coming) else 0

    def take(self, step: int, loss: Callable[[], float]) -> None:
        """Look, if it is time; ``loss`` is called only then."""
        due = int((self._marks <= step).sum())
        if due > self._done:
            self._losses[self._done : due] = loss()
            self._done = due

    def losses(self) -> NDArray[np.float64]:
        """One for each look; NaN for those after an early end."""
        return self._losses


def looked_at(rows: Rows) -> Rows:
    """Some of the rows, evenly spread.

    Parameters
    ----------
    rows : Rows
        That a member learns from.

    Returns
    -------
    Rows
        At most 500.
    """
    if len(rows) <= _MOST_ROWS:
        return rows
    places = np.linspace(0, len(rows) - 1, _MOST_ROWS).astype(np.int64)
    return Rows(rows.x[places], rows.y[places])
