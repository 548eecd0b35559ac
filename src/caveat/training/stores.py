"""Finished scores of a search, kept in memory or in a file that outlives a crash."""

import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Protocol

from caveat.errors import DataError
from caveat.evaluation.precision import BestScale

_BEGINNING = b'{"circumstances": '


@dataclass(frozen=True)
class Key:
    """What a score belongs to.

    Attributes
    ----------
    circumstances : str
        Fingerprint of all that the score depends on: the spec, the rows and their
        order, the folds, the seeds and the version of Caveat.
    spec, task : str
        The spec in words and the name of the task, for people who read the file.
    """

    circumstances: str
    spec: str = field(default="", compare=False)
    task: str = field(default="", compare=False)


def fingerprint(*parts: bytes) -> str:
    """A name for some bytes that others do not have."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


class Store(Protocol):
    """Where finished scores are kept, so that a search can be resumed."""

    def get(self, key: Key) -> BestScale | None:
        """The score, if it is there."""
        ...

    def put(self, scores: Mapping[Key, BestScale]) -> None:
        """Keep the scores of a fleet: all or, if that fails, none."""
        ...


@dataclass
class Memory:
    """A store that forgets when the program ends.

    Attributes
    ----------
    scores : dict
        What was put into it; empty at first.
    """

    scores: dict[Key, BestScale] = field(default_factory=dict)

    def get(self, key: Key) -> BestScale | None:
        """The score, if it is there."""
        return self.scores.get(key)

    def put(self, scores: Mapping[Key, BestScale]) -> None:
        """Keep scores."""
        self.scores.update(scores)


class FileStore:
    """A store in a file, one line of JSON per score, written as soon as they are known.

    A search that was interrupted or killed and is started again with the same file
    trains only what is missing. One file may serve any number of searches: a score is
    found again only for the same rows in the same order, folds, spec and seeds.

    Parameters
    ----------
    path : str or Path
        Made with its folders when the first score comes.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "scores.jsonl"
    >>> key = Key(fingerprint(b"rows and spec"))
    >>> FileStore(path).put({key: BestScale(scale=4.0, log_likelihood=-0.5)})
    >>> FileStore(path).get(key)
    BestScale(scale=4.0, log_likelihood=-0.5, at_edge=False)
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._scores = dict(self._read())

    def __len__(self) -> int:
        return len(self._scores)

    def get(self, key: Key) -> BestScale | None:
        """The score, if it is there."""
        return self._scores.get(key)

    def put(self, scores: Mapping[Key, BestScale]) -> None:
        """Keep scores, also if the program is killed right after.

        Parameters
        ----------
        scores : mapping of Key to BestScale
            Those of a fleet; written at once, so that the file has all or none.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        lines = b"".join(_to_line(key, score) for key, score in scores.items())
        with self._path.open("ab+", buffering=0) as file:
            file.write(_line_break(file) + lines)
        self._scores.update(scores)

    def _read(self) -> Iterator[tuple[Key, BestScale]]:
        if not self._path.exists():
            return
        for number, line in enumerate(self._path.read_bytes().split(b"\n"), 1):
            try:
                yield _from_line(line)
            except (ValueError, KeyError, TypeError) as error:
                if _BEGINNING.startswith(line[: len(_BEGINNING)]):
                    continue  # a line cut short
                raise DataError(
                    f"line {number} of {self._path} must be a score written by "
                    f"FileStore. Got {line[:60]!r}. Choose another file."
                ) from error


def _line_break(file: FileIO) -> bytes:
    """Ends a line that was being written when a program was killed."""
    if not file.seek(0, os.SEEK_END):
        return b""
    file.seek(-1, os.SEEK_END)
    return b"" if file.read(1) == b"\n" else b"\n"


def _to_line(key: Key, score: BestScale) -> bytes:
    record = {
        "circumstances": key.circumstances,
        "task": key.task,
        "spec": key.spec,
        "scale": _finite(score.scale),
        "log_likelihood": _finite(score.log_likelihood),
        "at_edge": score.at_edge,
    }
    return json.dumps(record, allow_nan=False, default=float).encode() + b"\n"


def _from_line(line: bytes) -> tuple[Key, BestScale]:
    record = json.loads(line)
    scale, value = record["scale"], record["log_likelihood"]
    key = Key(record["circumstances"], record["spec"], record["task"])
    return key, BestScale(
        math.nan if scale is None else float(scale),
        -math.inf if value is None else float(value),
        bool(record["at_edge"]),
    )


def _finite(value: float) -> float | None:
    """The number as JSON knows it; None for those of a training that diverged."""
    return value if math.isfinite(value) else None
