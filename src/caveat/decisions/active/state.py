"""What an active learner remembers, and the file in which it survives a stop."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from caveat.decisions.active.curve import LearningCurve
from caveat.errors import DataError, ParameterError

Rows = NDArray[np.int64]


@final
@dataclass(frozen=True)
class LearnerState:
    """Labels so far, the rows asked for, and the curve; plain values only.

    Attributes
    ----------
    rows : tuple of int
        Rows of the pool that have a label, in the order in which they were told.
    labels : tuple
        Their labels: numbers, texts or bools, or lists of numbers.
    pending : tuple of int
        Rows that were asked for and have no label yet.
    curve : LearningCurve
        Of the fits so far.
    """

    rows: tuple[int, ...] = ()
    labels: tuple[Any, ...] = ()
    pending: tuple[int, ...] = ()
    curve: LearningCurve = field(default_factory=LearningCurve)

    def told(self, rows: Rows, labels: NDArray[Any]) -> Self:
        """With further labels; those rows are no longer asked for."""
        asked = tuple(row for row in self.pending if row not in set(rows.tolist()))
        return replace(
            self,
            rows=(*self.rows, *rows.tolist()),
            labels=(*self.labels, *labels.tolist()),
            pending=asked,
        )

    def asked(self, rows: Rows) -> Self:
        """With rows that wait for a label."""
        return replace(self, pending=tuple(rows.tolist()))

    def scored(self, score: float) -> Self:
        """With a point of the curve for the labels so far."""
        return replace(self, curve=self.curve.with_point(len(self.rows), score))


def write_state(path: Path, settings: Mapping[str, Any], state: LearnerState) -> None:
    """Write settings and state as JSON; the file is complete at any time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(path.suffix + ".part")
    draft.write_text(json.dumps({"settings": settings, **asdict(state)}))
    draft.replace(path)


def read_state(path: Path, settings: Mapping[str, Any]) -> LearnerState:
    """The state in a file of the same settings; a new one if there is no file.

    Parameters
    ----------
    path : Path
        Of a file that :func:`write_state` wrote, or is to write.
    settings : mapping
        Of plain values, which must be those in the file.

    Returns
    -------
    LearnerState
    """
    if not path.exists():
        return LearnerState()
    try:
        stored = json.loads(path.read_text())
        found = stored["settings"]
        curve = {name: tuple(values) for name, values in stored["curve"].items()}
        parts = {name: tuple(stored[name]) for name in ("rows", "labels", "pending")}
        state = LearnerState(**parts, curve=LearningCurve(**curve))
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path} is not the file of an ActiveLearner: {error!r}."
        ) from error
    _same_settings(path, found, settings)
    return state


def _same_settings(path: Path, found: Any, settings: Mapping[str, Any]) -> None:
    for name, value in settings.items():
        if found.get(name) != value:
            raise ParameterError(
                f"{path} is of a learner with {name}={found.get(name)!r}, and this one "
                f"has {name}={value!r}. Go on with the same settings, or choose "
                f"another path."
            )
