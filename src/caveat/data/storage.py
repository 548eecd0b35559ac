"""Where data files lie: a folder of yours, the cache, or the net.

A file is looked for, under the same path, in

1. the folder named by the environment variable ``CAVEAT_DATA``,
2. the cache: the folder named by ``CAVEAT_CACHE``, or the usual one of the system,

and is otherwise downloaded into the cache. ``CAVEAT_MIRROR`` names the address of a
copy of the folder, to be used instead of the official addresses.
"""

import gzip
import logging
import math
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from caveat._optional import require
from caveat._progress import ProgressBar
from caveat.errors import DataError

_KILOBYTE = 1024
_DAMAGE = (
    EOFError,
    IndexError,
    KeyError,
    OSError,
    ValueError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes
    ----------
    path : str
        Where it lies below the data folder, with ``/`` between the parts.
    urls : tuple of str
        Its official addresses, in the order to try; none if it is not on the net.
    checksum : str or None
        Of the file as it is on the net: ``"md5:…"`` or ``"sha256:…"``, if known.
    """

    path: str
    urls: tuple[str, ...] = ()
    checksum: str | None = None


@dataclass(frozen=True)
class Edition:
    """One form in which a data set can be stored."""

    source: str
    files: tuple[DataFile, ...]


@dataclass(frozen=True)
class Dataset:
    """A data set and its editions, the one to prefer first."""

    name: str
    description: str
    licence: str
    editions: tuple[Edition, ...]


def cache_folder() -> Path:
    """The folder that downloads go to."""
    named = os.environ.get("CAVEAT_CACHE")
    return Path(named).expanduser() if named else Path(_pooch().os_cache("caveat"))


def folders() -> tuple[Path, ...]:
    """The folders that are searched, in this order."""
    named = os.environ.get("CAVEAT_DATA")
    if not named:
        return (cache_folder(),)
    folder = Path(named).expanduser()
    if not folder.is_dir():
        raise DataError(
            f"CAVEAT_DATA must name a folder. Got {named!r}, which is none: "
            f"correct it, or unset it to use {cache_folder()}."
        )
    return folder, cache_folder()


def find(path: str) -> Path | None:
    """The first place where the file ``path`` lies, if any."""
    places = (folder / path for folder in folders())
    return next((place for place in places if place.is_file()), None)


def addresses(file: DataFile) -> tuple[str, ...]:
    """Where the file can be downloaded from."""
    mirror = os.environ.get("CAVEAT_MIRROR")
    return (f"{mirror.rstrip('/')}/{file.path}",) if mirror else file.urls


def obtain(file: DataFile, *, progress: bool | None = None) -> Path:
    """The file on this machine, downloaded if it has to be.

    Parameters
    ----------
    file : DataFile
        The file to get.
    progress : bool, optional
        Whether to show a bar; by default on a terminal, if it takes long.

    Returns
    -------
    Path

    Raises
    ------
    DataError
        If it can be had nowhere, or has the wrong checksum; the message says where
        to put it by hand.
    """
    found = find(file.path)
    if found is None:
        return _download(file, progress)
    if file.checksum and not _pooch().hashes.hash_matches(str(found), file.checksum):
        raise damaged(found, f"its checksum is not {file.checksum}")
    return found


def is_present(edition: Edition) -> bool:
    """Whether all files of the edition are on this machine."""
    return all(find(file.path) is not None for file in edition.files)


def is_downloadable(edition: Edition) -> bool:
    """Whether all files of the edition have an address."""
    return all(addresses(file) for file in edition.files)


def choose(dataset: Dataset) -> Edition:
    """The first edition that is here, else the first that can be downloaded."""
    for suits in (is_present, is_downloadable):
        for edition in dataset.editions:
            if suits(edition):
                return edition
    raise _not_on_the_net(dataset)


@contextmanager
def reading(path: Path) -> Iterator[Path]:
    """Say which file it was if it cannot be read.

    Parameters
    ----------
    path : Path
        The file that is read inside the block.
    """
    try:
        yield path
    except DataError:
        raise
    except _DAMAGE as error:
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is a ``.gz``."""
    with reading(path):
        content = path.read_bytes()
        return gzip.decompress(content) if path.suffix == ".gz" else content


def damaged(path: Path, why: str) -> DataError:
    """The error for a file that is there but is not what it should be."""
    return DataError(
        f"{path} is damaged or another file than expected: {why}.\n"
        f"Replace it; or delete it, and it is downloaded again if it has an address."
    )


def _download(file: DataFile, progress: bool | None) -> Path:
    failures = []
    for address in addresses(file):
        try:
            return _retrieve(file, address, progress)
        except (OSError, ValueError) as error:  # no connection; wrong checksum
            failures.append(f"{address}\n    {type(error).__name__}: {error}")
    raise DataError(_absent(file, failures))


def _retrieve(file: DataFile, address: str, progress: bool | None) -> Path:
    target = cache_folder() / file.path
    with _quiet_pooch(), _Meter(target.name, progress) as meter:
        _pooch().retrieve(
            address,
            known_hash=file.checksum,
            fname=target.name,
            path=target.parent,
            progressbar=meter,
        )
    return target


def _absent(file: DataFile, failures: list[str]) -> str:
    tried = "".join(f"\n  {failure}" for failure in failures)
    problem = (
        f"could not be downloaded. Tried:{tried}"
        if failures
        else "is not on this machine, and there is no address to download it from."
    )
    return f"{file.path} {problem}\n{_by_hand(file)}"


def _by_hand(file: DataFile) -> str:
    places = "".join(f"\n  {folder / file.path}" for folder in folders())
    if os.environ.get("CAVEAT_DATA"):
        return f"If you have the file, put it at one of:{places}"
    return (
        f"If you have the file, put it at:{places}\n"
        f"or set CAVEAT_DATA to a folder that holds {file.path}"
    )


def _not_on_the_net(dataset: Dataset) -> DataError:
    missing = [f for f in dataset.editions[0].files if find(f.path) is None]
    others = f" (and {len(missing) - 1} more files)" if missing[1:] else ""
    return DataError(f"{dataset.name}{others}: {_absent(missing[0], [])}")


def _pooch() -> Any:
    return require("pooch", extra="data")


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    logger = _pooch().get_logger()
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)


class _Meter:
    """Our progress bar with the methods that pooch calls on one."""

    total = 0  # bytes; pooch sets it once it knows

    def __init__(self, what: str, show: bool | None) -> None:
        self._what, self._show = what, show
        self._bar: ProgressBar | None = None
        self._bytes = 0

    def __enter__(self) -> "_Meter":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def update(self, n_bytes: int) -> None:
        if self._bar is None:
            total = math.ceil(self.total / _KILOBYTE) or None
            self._bar = ProgressBar(f"{self._what} (kB)", total, self._show)
        kilobytes = self._bytes // _KILOBYTE
        self._bytes += n_bytes
        self._bar.advance(self._bytes // _KILOBYTE - kilobytes)

    def reset(self) -> None:
        """Pooch fills the bar once more at the end: that goes to a new one, unseen."""
        self.close()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
        self._bar, self._bytes = None, 0
