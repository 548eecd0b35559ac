"""Running the jobs of a protocol on all cores, keeping what is finished."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from caveat._progress import ProgressBar
from caveat.data import load_uci
from caveat.papers.table1.jobs import Job
from caveat.papers.table1.protocols import variants
from caveat.papers.table1.records import Record, RecordFile
from caveat.papers.table1.scoring import run
from caveat.papers.workers import spread

SETS = (
    "boston",
    "concrete",
    "energy",
    "kin8nm",
    "naval",
    "power",
    "protein",
    "wine",
    "yacht",
)
_SPLITS_PER_JOB = {"paper": 20}  # whose splits have few networks each
_FEW_SPLITS = 5


def run_protocol(
    protocol: str,
    path: Path,
    *,
    sets: Sequence[str] = SETS,
    n_splits: int | None = None,
    quick: bool = False,
    n_workers: int | None = None,
    progress: bool | None = None,
) -> list[Record]:
    """All splits of the given sets under a protocol; what ``path`` holds is kept.

    Parameters
    ----------
    protocol : str
        ``"paper"``, ``"grid"``, ``"best"`` or ``"flagship"``.
    path : Path
        CSV file of records, extended after every job, so that an interrupted run goes
        on where it was.
    sets : sequence of str
        Short names.
    n_splits : int, optional
        Only the first so many.
    quick : bool
        Far fewer epochs and draws: a smoke test.
    n_workers : int, optional
        Processes, by default one per core.
    progress : bool or None
        Show a progress bar; None shows it on a terminal.

    Returns
    -------
    list of Record
        All that the file holds.
    """
    file = RecordFile(path)
    jobs = list(_jobs(protocol, file, sets, n_splits, quick))
    total = sum(len(job.splits) for job in jobs)
    with ProgressBar(f"Table 1, {protocol}: splits", total, progress) as bar:
        for job, records in zip(jobs, spread(run, jobs, n_workers), strict=True):
            file.add(records)
            bar.advance(len(job.splits))
    return file.sorted()


def _jobs(
    protocol: str,
    file: RecordFile,
    sets: Sequence[str],
    n_splits: int | None,
    quick: bool,
) -> Iterator[Job]:
    """What is not in the file, the longest first."""
    sizes = {name: load_uci(name) for name in sets}
    for name in sorted(sets, key=lambda name: -len(sizes[name])):
        count = len(sizes[name].splits) if n_splits is None else n_splits
        for own in variants(protocol, name):
            missing = [
                k
                for k in range(min(count, len(sizes[name].splits)))
                if not all((protocol, variant, name, k) in file for variant in own)
            ]
            size = _SPLITS_PER_JOB.get(protocol, _FEW_SPLITS)
            for start in range(0, len(missing), size):
                chosen = tuple(missing[start : start + size])
                yield Job(protocol, own, name, chosen, quick)
