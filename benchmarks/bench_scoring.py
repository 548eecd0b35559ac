"""Throughput of ``caveat score``: one process, two workers, Ray; all the same bytes.

A folder of Parquet files is scored in this process, by one and two worker processes,
and by Ray with one and two. A second folder, of a single unit each time, tells what an
engine costs to start; the rest of the time is work. Ray is left out if it is not there.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import caveat
from benchmarks.bench_files import N_DRAWS, fitted, table_of
from benchmarks.results import FOLDER, Provenance, Report, console, store_markdown
from caveat.frames import Asking
from caveat.scoring import score

MODULE = "benchmarks.bench_scoring"
PLACES = (("local", 1), ("local", 2), ("ray", 1), ("ray", 2))
N_FILES = 4


@dataclass(frozen=True)
class Run:
    """A folder scored by an engine."""

    engine: str
    workers: int
    rows: int
    seconds: float
    start: float  # of these, to score a single small unit
    checksums: tuple[str, ...]

    @property
    def rate(self) -> float:
        """Rows a second once it is under way."""
        return self.rows / max(self.seconds - self.start, 1e-9)

    @property
    def name(self) -> str:
        """As a reader knows it."""
        if (self.engine, self.workers) == ("local", 1):
            return "in this process"
        return f"{self.engine}, {self.workers} worker{'s' * (self.workers > 1)}"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns 1 if bytes differ."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--rows", type=int, default=2_000_000, help="of all files")
    parser.add_argument("--engines", nargs="+", default=["local", "ray"])
    chosen, _ = parser.parse_known_args(given)
    rows = 8_000 if chosen.quick else chosen.rows
    has_ray = importlib.util.find_spec("ray") is not None
    engines = [e for e in chosen.engines if e != "ray" or has_ray]
    places = [place for place in PLACES if place[0] in engines]
    with tempfile.TemporaryDirectory() as folder:
        found = _runs(Path(folder), rows, places)
    report = _report(found)
    report.show(console())
    if not chosen.quick:
        provenance = Provenance.now(MODULE, given)
        store_markdown(FOLDER / "scoring.md", provenance, [report])
    return int(len({run.checksums for run in found}) > 1)


def _runs(folder: Path, rows: int, places: Sequence[tuple[str, int]]) -> list[Run]:
    caveat.save(fitted(), folder / "m.caveat")
    _write(folder / "in", rows)
    _write(folder / "small", 2 * N_FILES)
    return [_run(folder, engine, workers) for engine, workers in places]


def _write(folder: Path, rows: int) -> None:
    folder.mkdir()
    each = rows // N_FILES
    for number in range(N_FILES):
        own = table_of(each, number).drop_columns("y")
        path = folder / f"{number}.parquet"
        pq.write_table(own, path, row_group_size=max(each // 4, 1))


def _run(folder: Path, engine: str, workers: int) -> Run:
    start, _ = _timed(folder, "small", engine, workers)
    seconds, content = _timed(folder, "in", engine, workers)
    sums = tuple(unit["sha256"] for unit in content["units"])
    return Run(engine, workers, content["rows"], seconds, start, sums)


def _timed(
    folder: Path, source: str, engine: str, workers: int
) -> tuple[float, dict[str, Any]]:
    output = folder / f"{source}-{engine}-{workers}"
    start = time.perf_counter()
    score(
        folder / "m.caveat",
        folder / source,
        output,
        asking=Asking.of(n_draws=N_DRAWS),
        engine=engine,
        n_workers=workers,
    )
    seconds = time.perf_counter() - start
    return seconds, json.loads((output / "_manifest.json").read_text())


def _report(found: Sequence[Run]) -> Report:
    first = found[0]
    by_place = {(run.engine, run.workers): run for run in found}
    notes = [
        f"{N_DRAWS} draws a row. Start: seconds to score {N_FILES * 2} rows; rows a "
        f"second are of the time beyond it."
    ]
    if two := by_place.get(("local", 2)):
        notes.append(f"two workers against one process: {two.rate / first.rate:.2f}×")
    if one := by_place.get(("ray", 1)):
        notes.append(
            f"Ray with one worker against this process: "
            f"{first.rate / one.rate - 1.0:+.0%} time a row, "
            f"{one.start - first.start:.1f} s to start"
        )
    same = len({run.checksums for run in found}) == 1
    notes.append("all write the same bytes" if same else "THE BYTES DIFFER")
    return Report(
        title="`caveat score`: throughput",
        columns=("engine", "rows", "seconds", "start", "rows a second"),
        rows=[
            [
                run.name,
                f"{run.rows:,}",
                f"{run.seconds:.1f}",
                f"{run.start:.1f}",
                f"{run.rate:,.0f}",
            ]
            for run in found
        ],
        notes=notes,
    )


if __name__ == "__main__":
    raise SystemExit(main())
