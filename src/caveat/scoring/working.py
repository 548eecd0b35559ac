"""What a worker does: one unit, from its rows to a file that is on disk."""

import errno
import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import final

import pyarrow as pa

from caveat._drafts import said_of
from caveat._threads import one_core
from caveat.errors import CaveatError, DataError
from caveat.files import load_frame
from caveat.frames import Asking, Dialect, FrameModel, open_table, predict_file
from caveat.scoring.outcomes import Done, Failed
from caveat.scoring.units import Unit, digest_of, stamp_of

# What a file or a model may make Python say.
_ANYTHING = (
    *(CaveatError, OSError, ValueError, TypeError, LookupError, RuntimeError),
    *(ArithmeticError, MemoryError, pa.ArrowException),
)
# Of writing: other units would meet it as well.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


@final
@dataclass(frozen=True)
class ScoringTask:
    """What all units of a run share; sent to every worker.

    Attributes
    ----------
    model : str
        The model file.
    digest : str
        Its SHA-256.
    root, output : str
        The folders of input and output.
    asking : Asking
    keep : bool
    unseen : str
    reads : Dialect
    """

    model: str
    digest: str
    root: str
    output: str
    asking: Asking
    keep: bool
    unseen: str
    reads: Dialect

    def path_of(self, unit: Unit) -> Path:
        """The file of a unit's rows."""
        root = Path(self.root)
        return root if root.is_file() else root / unit.source


def score_unit(task: ScoringTask, unit: Unit) -> Done | Failed:
    """Score a unit; whatever goes wrong with it is its own matter.

    Parameters
    ----------
    task : ScoringTask
        The run.
    unit : Unit
        Of its plan.

    Returns
    -------
    Done or Failed
    """
    try:
        return _scored(task, unit)
    except _ANYTHING as error:
        cause = error.__cause__ if isinstance(error, CaveatError) else error
        number = cause.errno if isinstance(cause, OSError) else None
        why = str(error) if isinstance(error, CaveatError) else _told(task, unit, error)
        return Failed(unit.source, why, is_fatal=number in _FULL)


def _told(task: ScoringTask, unit: Unit, error: Exception) -> str:
    return f"{task.path_of(unit)} cannot be scored: {type(error).__name__}: {error}"


def _scored(task: ScoringTask, unit: Unit) -> Done:
    model = _model(task.model, task.digest)
    path = task.path_of(unit)
    _check_unchanged(path, unit)
    if not _has_rows(path, unit, task.reads):
        return Done(unit.name, 0, "")
    goal = Path(task.output) / unit.name
    with said_of(goal):
        goal.parent.mkdir(parents=True, exist_ok=True)
    with (
        open_table(path, task.reads, row_group=unit.group) as table,
        warnings.catch_warnings(),
        one_core(),  # sums round by the number of threads
    ):
        warnings.simplefilter("ignore")  # said once, by whoever loads the model
        found = predict_file(
            model,
            table,
            goal,
            asking=task.asking,
            keep=task.keep,
            unseen=task.unseen,
        )
    try:
        _check_unchanged(path, unit)
    except DataError:
        goal.unlink()  # of what, nobody knows
        raise
    return Done(unit.name, found.n_rows, digest_of(goal), found.notes)


@lru_cache(maxsize=1)
def _model(path: str, digest: str) -> FrameModel:
    """The model, once for each process; checked after it was read."""
    found = load_frame(path)
    if digest_of(Path(path)) != digest:
        raise DataError(f"{path} has changed since the run began. Begin another one.")
    return found


def _check_unchanged(path: Path, unit: Unit) -> None:
    if stamp_of(path) != unit.stamp:
        raise DataError(
            f"{path} has changed since the run began; run it again when it is complete."
        )


def _has_rows(path: Path, unit: Unit, reads: Dialect) -> bool:
    if unit.group is not None:
        return True  # a group without rows is no unit
    with open_table(path, reads) as table:
        return any(batch.num_rows for batch in table.batches())
