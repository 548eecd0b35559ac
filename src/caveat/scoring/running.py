"""``score``: a folder of tables in, a folder of answers out, unit by unit."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

from caveat import _validation as validation
from caveat._progress import ProgressBar
from caveat._version import __version__
from caveat.engines import Engine, spread
from caveat.engines.jobs import TRIES
from caveat.errors import ParameterError, StoppedError
from caveat.files import load_frame
from caveat.frames import Asking, Dialect
from caveat.frames.encoding import UNSEEN
from caveat.frames.reading import FORMATS, PARQUET
from caveat.predictive.base import count_of
from caveat.scoring.folder import MANIFEST, ResultFolder, results_in
from caveat.scoring.outcomes import Done, Failed, UnitsFailedError
from caveat.scoring.units import Unit, UnitPlan, check_apart, digest_of, plan_units
from caveat.scoring.working import ScoringTask, score_unit

_PACKAGES = ("torch", "numpy", "pyarrow")  # which decide about bytes
_NOTES = 5  # that are shown


@final
@dataclass(frozen=True)
class Scored:
    """What a run has done.

    Attributes
    ----------
    n_rows : int
        In the output folder, of this run and those before it.
    n_units : int
        Likewise.
    n_new : int
        Units of this run.
    n_empty : int
        Files of the input that hold no rows.
    changed : tuple of str
        Files that have changed since a run before, and were scored again.
    notes : tuple of str
        What had to be made up, with its file.
    """

    n_rows: int
    n_units: int
    n_new: int
    n_empty: int
    changed: tuple[str, ...]
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """What is worth telling of the input; of many notes the first."""
        found = [f"{name} has changed, and was scored again" for name in self.changed]
        if self.n_empty:
            found.append(f"{count_of(self.n_empty, 'file')} without rows")
        found += self.notes[:_NOTES]
        if len(self.notes) > _NOTES:
            found.append(f"{len(self.notes) - _NOTES} more notes in {MANIFEST}")
        return found


def score(  # noqa: PLR0913, a door: all but the files by name
    model: Any,
    source: Any,
    output: Any,
    *,
    asking: Asking | None = None,
    keep: bool = False,
    unseen: str = "error",
    reads: Dialect | None = None,
    output_format: str = PARQUET,
    engine: str = "local",
    n_workers: int | None = None,
    address: str | None = None,
    resume: bool = False,
    progress: bool | None = False,
) -> Scored:
    """Score all tables of a folder, on any number of workers; it can be stopped.

    The input is cut into units: a row group of a Parquet file, or a whole file of
    another format. Each becomes a file of its own, which is there when it is complete.
    Numbers of workers, engines and interruptions change nothing in these files.

    Parameters
    ----------
    model : str or Path
        A model file of a ``FrameModel``.
    source : str or Path
        A file or a folder of CSV, Parquet, Arrow or JSON lines. Names that begin with a
        dot or an underscore are left out.
    output : str or Path
        A folder, new or empty, or of a run to go on with; not within the input.
    asking : Asking, optional
        Level, draws and seed.
    keep : bool, default False
        Whether the columns of the input come first.
    unseen : {"error", "missing"}
        What a category is that fit has not seen.
    reads : Dialect, optional
        Where the names of the files do not say all.
    output_format : {"parquet", "csv", "arrow", "jsonl"}
        Of the answers.
    engine : {"local", "ray"}
        Processes of this machine, or Ray (``pip install 'caveat[scale]'``). Workers of
        a cluster must see model, input and output at the same paths.
    n_workers : int, optional
        By default one per core; with "local" and 1, all is done in this process.
    address : str, optional
        Of a Ray cluster; by default one is started on this machine.
    resume : bool, default False
        Whether to go on where a run in this folder has ended.
    progress : bool or None, default False
        Whether to show a bar.

    Returns
    -------
    Scored

    Raises
    ------
    UnitsFailedError
        If a file could not be read or a table does not fit. All other units are done
        first, but on a full disk.
    """
    root, folder = Path(source).expanduser(), Path(output).expanduser()
    asking, reads = asking or Asking(), reads or Dialect()
    _check(engine, n_workers, address, unseen, output_format)
    check_apart(root, folder)
    load_frame(model)  # or say what is wrong with it, before anything is made
    digest = digest_of(Path(model))
    settings = {
        "model_sha256": digest,
        **asdict(asking),
        "keep": keep,
        "unseen": unseen,
        **{f"input_{name}": value for name, value in asdict(reads).items()},
        "output_format": output_format,
        "caveat": __version__,
        **{name: version(name) for name in _PACKAGES},
    }
    plan = plan_units(root, settings, reads)
    task = ScoringTask(
        model=str(Path(model).resolve()),
        digest=digest,
        root=str(root.resolve()),
        output=str(folder.resolve()),
        asking=asking,
        keep=keep,
        unseen=unseen,
        reads=reads,
    )
    with results_in(folder, settings) as results:
        changed = results.begin(plan.units, resume=resume)
        todo = [unit for unit in plan.units if unit.name not in results.done]
        run = _Run(results, plan, Engine(engine), n_workers, address)
        run.complete(task, todo, progress)
        results.finish(plan.units)
    return _summary(results, plan, len(todo), changed)


@dataclass
class _Run:
    results: ResultFolder
    plan: UnitPlan
    engine: Engine
    n_workers: int | None
    address: str | None

    def complete(
        self, task: ScoringTask, todo: Sequence[Unit], show: bool | None
    ) -> None:
        """Do the units; raise when all that can be done are, or at Ctrl-C."""
        failures = list(self.plan.broken)
        answers = spread(
            partial(score_unit, task),
            todo,
            self.n_workers,
            engine=self.engine,
            address=self.address,
            on_lost=partial(_lost, task),
        )
        try:
            with (
                ProgressBar("units", len(todo), show) as bar,
                closing(answers),  # also when this is left early
            ):
                for _, found in answers:
                    if isinstance(found, Done):
                        self.results.add(found)
                    else:
                        failures.append(found)
                        if found.is_fatal:
                            break
                    bar.advance()
        except KeyboardInterrupt:
            raise StoppedError(
                f"stopped by Ctrl-C; {len(self.results.done)} of "
                f"{len(self.plan.units)} units are saved in {self.results.path}; go "
                f"on with --resume (resume=True)."
            ) from None
        if failures:
            saved = len(self.results.done)
            error = UnitsFailedError.of(failures, saved, self.results.path)
            raise error


def _lost(task: ScoringTask, unit: Unit) -> Failed:
    where = "" if unit.group is None else f", row group {unit.group}"
    return Failed(
        unit.source,
        f"{task.path_of(unit)}{where}: the process that scored it ended {TRIES} times; "
        f"it was killed, or there was too little memory",
    )


def _check(
    engine: str,
    n_workers: int | None,
    address: str | None,
    unseen: str,
    output_format: str,
) -> None:
    validation.one_of("engine", engine, [str(one) for one in Engine])
    validation.one_of("unseen", unseen, UNSEEN)
    validation.one_of("output_format", output_format, FORMATS)
    if n_workers is not None:
        validation.positive_int("n_workers", n_workers)
    if address is not None and engine != Engine.ray:
        raise ParameterError("address is of a Ray cluster: pass --engine ray with it.")


def _summary(
    results: ResultFolder, plan: UnitPlan, n_new: int, changed: Sequence[str]
) -> Scored:
    done = [(unit, results.done[unit.name]) for unit in plan.units]
    full = {unit.source for unit, own in done if own.rows}
    return Scored(
        n_rows=sum(own.rows for _, own in done),
        n_units=len(done),
        n_new=n_new,
        n_empty=plan.n_files - len(full),
        changed=tuple(changed),
        notes=tuple(f"{u.source}: {note}" for u, own in done for note in own.notes),
    )
