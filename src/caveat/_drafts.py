"""Files that appear only when they are complete."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from caveat.errors import CaveatError, DataError, ParameterError


def checked_output(path: Any, *inputs: Any) -> Path:
    """A path that a file can be written to, before anything long is done for it.

    Parameters
    ----------
    path : str or Path
        Where the file is to be; a link is followed.
    *inputs : str or Path
        Files that are read, which it must not replace.

    Returns
    -------
    Path
    """
    found = Path(path).expanduser()
    found = found.resolve() if found.is_symlink() else found
    if found.is_dir():
        raise ParameterError(f"{found} must be a file to be written. It is a folder.")
    if not found.parent.is_dir():
        raise ParameterError(
            f"The folder of {found} must exist for it to be written. "
            f"{found.parent} does not; make it first."
        )
    for other in inputs:
        if _is_same(found, Path(other)):
            raise ParameterError(
                f"The output must not be {other}, which is read and would be lost; "
                f"choose another name."
            )
    return found


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.is_file() and other.samefile(one)
    except OSError:  # the other is not there
        return False


@contextmanager
def whole_file(path: Any) -> Iterator[Path]:
    """A draft to write to, which takes the place of ``path`` at the end.

    Until then ``path`` is what it was; after an error, or if the program is killed, it
    still is. A device or a pipe has no draft and is written to as it is.

    Parameters
    ----------
    path : str or Path
        Where the file is to be.

    Yields
    ------
    Path
        Of the draft, in the same folder.
    """
    goal = checked_output(path)
    if goal.exists() and not goal.is_file():
        with said_of(goal):
            yield goal
        return
    draft = goal.with_name(f".{goal.name}.{secrets.token_hex(4)}.part")
    try:
        with said_of(goal):
            # By os.open and not by tempfile: the mode is then that of any new file.
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            yield draft
            _to_disk(draft)
            draft.replace(goal)
            _to_disk(goal.parent)
    finally:
        with suppress(OSError):
            draft.unlink()


@contextmanager
def said_of(goal: object) -> Iterator[None]:
    """Say what could not be written; a pipe that was closed is another matter."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if isinstance(error, CaveatError):
            raise
        why = error.strerror or str(error)
        raise DataError(f"{goal} could not be written: {why}.") from error


def _to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, would survive a power cut."""
    with suppress(OSError):  # some systems cannot do so for folders
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
