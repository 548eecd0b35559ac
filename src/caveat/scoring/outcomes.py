"""What becomes of a unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

from caveat.errors import DataError
from caveat.predictive.base import count_of


@final
@dataclass(frozen=True)
class Done:
    """A unit that is on disk.

    Attributes
    ----------
    name : str
        Of its file, in the output folder.
    rows : int
        With none there is no file.
    sha256 : str
        Of the file; "" without one.
    notes : tuple of str
        What had to be made up, a sentence each.
    """

    name: str
    rows: int
    sha256: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, record: Any) -> Self:
        """From a line of JSON; errors of Python if it is none of ours."""
        name, rows, digest = record["name"], record["rows"], record["sha256"]
        return cls(str(name), int(rows), str(digest), tuple(record["notes"]))


@final
@dataclass(frozen=True)
class Failed:
    """A unit, or a file, that could not be scored.

    Attributes
    ----------
    source : str
        The file, in the input folder.
    why : str
        A sentence with file and row.
    is_fatal : bool
        Whether all others would fail as well, as on a full disk.
    """

    source: str
    why: str
    is_fatal: bool = False


class UnitsFailedError(DataError):
    """Some units could not be scored; those that could are saved.

    Attributes
    ----------
    failures : tuple of Failed
    """

    failures: tuple[Failed, ...] = ()

    @classmethod
    def of(cls, failures: Sequence[Failed], saved: int, output: object) -> Self:
        """With the first failure in words, and all of them attached."""
        more = "" if len(failures) == 1 else f" (and {len(failures) - 1} more)"
        kept = f"{count_of(saved, 'unit')} {'is' if saved == 1 else 'are'}"
        error = cls(
            f"{failures[0].why.rstrip('.')}{more}. {kept} saved in {output}; mend it "
            f"and go on with --resume (resume=True)."
        )
        error.failures = tuple(failures)
        return error
