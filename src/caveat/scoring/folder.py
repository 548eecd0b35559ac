"""The output folder: one run at a time, what is done, and the manifest at the end."""

import json
import os
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from caveat._drafts import said_of, whole_file
from caveat.errors import DataError, ParameterError
from caveat.scoring.outcomes import Done
from caveat.scoring.units import Unit, digest_of

LOCK, RUN, JOURNAL, MANIFEST = "_lock", "_run.json", "_units.jsonl", "_manifest.json"
_OURS = {LOCK, RUN, JOURNAL, MANIFEST}
# SOURCE.GROUP.HASH.FORMAT, and drafts of it: .….8 digits.part
_UNIT = re.compile(r".+\.\d{5}\.[0-9a-f]{16}\.\w+")
_DRAFT = re.compile(r"\..+\.[0-9a-f]{8}\.part")


class ResultFolder:
    """Results of one run in a folder, which only one process has open.

    Parameters
    ----------
    path : Path
        Of the folder.
    settings : mapping
        All that answers depend on besides the input, for JSON.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.path = path
        self.settings = dict(settings)
        self.done: dict[str, Done] = {}

    def begin(self, units: Sequence[Unit], *, resume: bool) -> list[str]:
        """Find what is there, and take away what is not of these units.

        Parameters
        ----------
        units : sequence of Unit
            Of the plan.
        resume : bool
            Whether there may be results.

        Returns
        -------
        list of str
            Input files that have changed since they were scored.
        """
        begun = (self.path / RUN).exists()
        if begun and not resume:
            raise ParameterError(
                f"{self.path} holds results of a run. Go on with it by --resume "
                f"(resume=True), or choose another folder."
            )
        if not begun:
            self._check_empty()
            _write_json(self.path / RUN, self.settings)
            return []
        self._check_settings()
        known = self._journal()
        changed = self._changed(known, units)
        names = {unit.name for unit in units}
        fine = [d for n, d in known.items() if n in names and self._is_there(d)]
        self.done = {done.name: done for done in fine}
        if len(self.done) < len(units) or changed:
            (self.path / MANIFEST).unlink(missing_ok=True)
        self._sweep()
        lines = "".join(_line(done) for done in fine)
        with whole_file(self.path / JOURNAL) as draft:
            draft.write_text(lines)
        return changed

    def add(self, done: Done) -> None:
        """Note a unit that is on disk, also if the program is killed right after."""
        with said_of(self.path / JOURNAL), (self.path / JOURNAL).open("a") as file:
            file.write(_line(done))
            file.flush()
            os.fsync(file.fileno())
        self.done[done.name] = done

    def finish(self, units: Sequence[Unit]) -> None:
        """Write the manifest: all units are there, and nothing else is."""
        expected = {unit.name for unit in units if self.done[unit.name].rows}
        found = {name for name, _ in self._files() if _UNIT.fullmatch(Path(name).name)}
        if found != expected:
            odd = sorted(found ^ expected)[0]
            raise DataError(
                f"{self.path} must hold the files of this run and no others. {odd} is "
                f"{'not of it' if odd in found else 'gone'}; run again with --resume."
            )
        own = [
            {
                "source": unit.source,
                "row_group": unit.group,
                "source_sha256": unit.content,
                **asdict(self.done[unit.name]),
            }
            for unit in units
        ]
        rows = sum(unit["rows"] for unit in own)
        content = {"format": 1, **self.settings, "rows": rows, "units": own}
        if self._manifest() != json.loads(json.dumps(content)):  # tuples are lists
            _write_json(self.path / MANIFEST, content)

    # ------------------------------------------------------------ private

    def _check_empty(self) -> None:
        others = [p.name for p in self.path.iterdir() if p.name != LOCK]
        if others:
            raise ParameterError(
                f"{self.path} must be new or empty, or hold a run to go on with. It "
                f"holds {others[0]!r}; choose another folder."
            )

    def _check_settings(self) -> None:
        try:
            before = json.loads((self.path / RUN).read_text())
            differing = [k for k in self.settings if before.get(k) != self.settings[k]]
        except (ValueError, AttributeError, OSError) as error:
            raise DataError(f"{self.path / RUN} is damaged: {error}") from error
        if differing:
            name = differing[0]
            raise ParameterError(
                f"{self.path} was begun with {name} {before.get(name)!r}, and this is "
                f"{name} {self.settings[name]!r}. Choose another folder."
            )

    def _manifest(self) -> Any:
        try:
            return json.loads((self.path / MANIFEST).read_text())
        except (ValueError, OSError):
            return None

    def _journal(self) -> dict[str, Done]:
        """Units by name; a line that was cut short is of a unit to be done again."""
        path = self.path / JOURNAL
        found = {}
        for line in path.read_text().splitlines() if path.exists() else ():
            try:
                done = Done.of(json.loads(line))
            except (ValueError, TypeError, LookupError):
                continue
            found[done.name] = done
        return found

    def _changed(self, known: Mapping[str, Done], units: Sequence[Unit]) -> list[str]:
        pieces = {_piece(unit.name) for unit in units}
        names = {unit.name for unit in units}
        sources = {unit.source for unit in units}
        changed = set()
        for name in known:
            source = _piece(name).rpartition(".")[0]
            if source not in sources:
                raise ParameterError(
                    f"{source}, of which {self.path} holds results, is no longer "
                    f"among the input. Put it back, or choose another folder."
                )
            if name not in names or _piece(name) not in pieces:
                changed.add(source)
        return sorted(changed)

    def _is_there(self, done: Done) -> bool:
        path = self.path / done.name
        if not done.rows:
            return True
        return path.is_file() and digest_of(path) == done.sha256

    def _sweep(self) -> None:
        """Drafts of a run that was killed, and units that are not noted or not ours."""
        kept = {name for name, done in self.done.items() if done.rows}
        for name, path in self._files():
            is_unit = _UNIT.fullmatch(path.name) and name not in kept
            if is_unit or _DRAFT.fullmatch(path.name):
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[str, Path]]:
        for path in sorted(self.path.rglob("*")):
            if path.is_file() and path.name not in _OURS:
                yield path.relative_to(self.path).as_posix(), path


@contextmanager
def results_in(path: Path, settings: Mapping[str, Any]) -> Iterator[ResultFolder]:
    """A folder of results, made if need be, for one run at a time.

    Parameters
    ----------
    path : Path
        Of the folder.
    settings : mapping
        As of :class:`ResultFolder`.

    Yields
    ------
    ResultFolder
    """
    if path.exists() and not path.is_dir():
        raise ParameterError(f"{path} must be a folder. It is a file.")
    with said_of(path):
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        _lock(handle, path)
        yield ResultFolder(path, settings)
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)  # and with it the lock, as when the process is killed


def _lock(handle: int, path: Path) -> None:
    """Of the system, not of the file: a run that was killed leaves none."""
    try:
        import fcntl
    except ImportError:  # Windows: nothing keeps two runs apart but their users
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        who = os.read(handle, 200).decode(errors="replace").strip() or "another process"
        raise ParameterError(
            f"{path} is being written by another run ({who}). Wait for it, or choose "
            f"another folder."
        ) from error
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode())


def _piece(name: str) -> str:
    """SOURCE.GROUP of SOURCE.GROUP.HASH.FORMAT."""
    return name.rsplit(".", 2)[0]


def _line(done: Done) -> str:
    # With a line break before it: the last line may have been cut short.
    return f"\n{json.dumps(asdict(done))}\n"


def _write_json(path: Path, content: Any) -> None:
    with whole_file(path) as draft:
        draft.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
