"""A C file as a library of this machine: compiled once, on first use, and kept.

A wheel that holds the source works everywhere and is compiled for the very processor it
runs on. Where that fails (no compiler, an old one, Windows) there is no library, and
whoever asked does without. What is kept lies in a folder that nobody else can write to
(in the cache, or else among temporary files), under a name made of the source, the
options and the processor; it is put there whole, so that two processes may build it at
once. A library built for another processor is never loaded; without a folder it is
built for this process alone.
"""

import ctypes
import getpass
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from caveat.errors import CaveatError

_OPTIONS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    # No part of -ffast-math that NaN or the rounding of others would notice.
    "-fno-math-errno",
    "-fno-trapping-math",
    "-fno-strict-aliasing",
    "-w",
)
_TUNED = (("-march=native",), ("-mcpu=native",), ())  # the first that works
_PATIENCE = 120.0  # seconds for a compiler
_COMPILERS = ("cc", "gcc", "clang")


class NoLibraryError(CaveatError, RuntimeError):
    """There is no compiled library here; the message says why."""


def library(source: Path) -> ctypes.CDLL:
    """The compiled form of a C file.

    Parameters
    ----------
    source : Path
        One file that needs nothing but the C library.

    Returns
    -------
    ctypes.CDLL

    Raises
    ------
    NoLibraryError
        If there is none and none can be made.
    """
    if sys.platform == "win32":
        raise NoLibraryError("nothing is compiled on Windows")
    try:
        text = source.read_bytes()
    except OSError as error:
        raise NoLibraryError(f"the source is not there: {error}") from error
    folder = _folder()
    kept = None if folder is None else folder / f"{source.stem}-{_key(text)}.so"
    if kept is not None and _is_ours(kept):
        try:
            return ctypes.CDLL(str(kept))
        except OSError:  # of another system that shares this folder
            pass
    return _built(source, kept)


def _built(source: Path, kept: Path | None) -> ctypes.CDLL:
    """Compile in a folder of our own, load, and keep the file if there is a place."""
    compiler = _compiler()
    try:
        with tempfile.TemporaryDirectory(prefix="caveat-") as folder:
            made = Path(folder) / "library.so"
            _compile(compiler, source, made)
            if kept is not None and _keep(made, kept):
                made = kept
            return ctypes.CDLL(str(made))  # stays in memory when the file has gone
    except OSError as error:
        raise NoLibraryError(f"a library could not be built: {error}") from error


def _compiler() -> list[str]:
    """The compiler's command: the one named by ``CC``, or the system's."""
    named = os.environ.get("CC", "").strip()
    for command in [shlex.split(named)] if named else [[name] for name in _COMPILERS]:
        found = shutil.which(command[0])
        if found is not None:
            return [found, *command[1:]]
    raise NoLibraryError(
        f"there is no C compiler: {named or ', '.join(_COMPILERS)} not found"
    )


def _compile(compiler: list[str], source: Path, into: Path) -> None:
    said = ""
    for tuned in _TUNED:
        command = [*compiler, *_OPTIONS, *tuned, "-o", str(into), str(source), "-lm"]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NoLibraryError(f"{compiler[0]} could not be run: {error}") from error
        if not done.returncode and into.exists():
            return
        said = said or done.stderr.strip()[:300]
    raise NoLibraryError(f"{compiler[0]} could not compile {source.name}: {said}")


def _keep(made: Path, kept: Path) -> bool:
    """Put a file into its place at once, or not at all; whether it is there."""
    new = kept.with_name(f"{kept.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        shutil.copyfile(made, new)
        new.chmod(0o500)
        new.replace(kept)
    except OSError:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        return False
    return True


def _key(text: bytes) -> str:
    """What a library depends on, as a short name."""
    parts = (text, repr(_OPTIONS).encode(), _processor().encode())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:20]


def _processor() -> str:
    """What compilers call native: the instructions that this machine knows."""
    own = [platform.system(), platform.machine(), *platform.libc_ver()]
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return "|".join([*own, platform.processor(), platform.release()])
    marks = ("model name", "flags", "Features", "CPU part", "isa")
    own += sorted({line for line in lines if line.startswith(marks)})
    return "|".join(own)


def _folder() -> Path | None:
    """The folder of compiled files: one that can be made, and is ours alone."""
    for place in (_in_cache, _in_temporary):
        try:
            folder = place()
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except (OSError, RuntimeError, KeyError):  # there is no home, or no name
            continue
        if _is_ours(folder) and os.access(folder, os.W_OK):
            return folder
    return None


def _in_cache() -> Path:
    return cache_home() / "compiled"


def _in_temporary() -> Path:
    """For users without a home, or with one that is read only."""
    return Path(tempfile.gettempdir()) / f"caveat-{getpass.getuser()}"


def cache_home() -> Path:
    """Where Caveat keeps what can be made again; ``CAVEAT_CACHE`` names another."""
    named = os.environ.get("CAVEAT_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "caveat"
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "caveat"


def _is_ours(path: Path) -> bool:
    """Whether it is there, belongs to us, and no other user can change it."""
    if sys.platform == "win32":
        return False
    try:
        found = path.stat(follow_symlinks=False)
    except OSError:
        return False
    shared = stat.S_IWGRP | stat.S_IWOTH
    return found.st_uid == os.getuid() and not found.st_mode & shared
