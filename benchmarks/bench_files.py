"""Memory and time of ``caveat predict`` on files of growing length.

A model of a mixed table, fitted once, predicts files of 1/100, 1/10 and all of the
rows, each in a process of its own. Memory must stay below 1 GB, and must not grow with
the file; and the same rows must get the same answers, bit by bit, in every format.
Finished files are kept in ``--cache`` and not predicted again.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

import caveat
from benchmarks import memory
from benchmarks.results import FOLDER, Provenance, Report, console, store_markdown
from caveat.frames import FrameModel, open_table

MODULE = "benchmarks.bench_files"
LIMIT = 1_000_000_000  # bytes
GROWTH = 1.25  # of the peak, from the shortest file to the longest
N_DRAWS = 20
_AT_ONCE = 100_000  # rows written at a time


@dataclass(frozen=True)
class Run:
    """One file predicted."""

    rows: int
    format: str
    bytes: int
    peak: int
    seconds: float
    cpu: float
    checksum: str  # of the answers, as float64


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns 1 if memory or answers are not what is promised."""
    given = sys.argv[1:] if argv is None else list(argv)
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke test")
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the longest")
    parser.add_argument("--formats", nargs="+", default=["csv", "parquet"])
    parser.add_argument("--cache", type=Path, help="folder of finished runs")
    parser.add_argument("--child", nargs=3, type=Path, help=argparse.SUPPRESS)
    chosen, _ = parser.parse_known_args(given)
    if chosen.child is not None:
        return _child(*chosen.child)
    rows = 20_000 if chosen.quick else chosen.rows
    with tempfile.TemporaryDirectory() as folder:
        found = _runs(Path(folder), rows, chosen.formats, chosen.cache)
    report = _report(found)
    report.show(console())
    if not chosen.quick and rows >= 10_000_000:
        provenance = Provenance.now(MODULE, given)
        store_markdown(FOLDER / "files.md", provenance, [report])
    return int(not _agree(found) or (not chosen.quick and not _is_flat(found)))


def _runs(
    folder: Path, rows: int, formats: Sequence[str], cache: Path | None
) -> list[Run]:
    model = folder / "m.caveat"
    caveat.save(fitted(), model)
    found = []
    for kind in formats:
        for number in (rows // 100, rows // 10, rows):
            kept = None if cache is None else cache / f"{kind}-{number}.json"
            if kept is not None and kept.exists():
                found.append(Run(**json.loads(kept.read_text())))
                continue
            path = folder / f"rows.{kind}"
            write_rows(path, number)
            found.append(_in_fresh_process(model, path, number))
            path.unlink()
            if kept is not None:
                kept.parent.mkdir(parents=True, exist_ok=True)
                kept.write_text(json.dumps(asdict(found[-1])))
    return found


def fitted() -> FrameModel:
    """A quick model of 2,000 rows."""
    return FrameModel.fit(table_of(2000, 0), target="y", preset="fast")


def table_of(n_rows: int, seed: int) -> Any:
    """Numbers with gaps, categories, booleans, dates, and a target."""
    rng = np.random.default_rng(seed)
    size, gap = rng.normal(size=(2, n_rows))
    kind = rng.integers(0, 3, n_rows)
    days = np.datetime64("2020-01-01") + rng.integers(0, 900, n_rows)
    curve = np.where(kind == 0, np.sin(2.0 * size), -size)  # a task for networks
    y = curve + 0.1 * rng.normal(size=n_rows)
    return pa.table(
        {
            "size": size,
            "gap": pa.array(np.where(rng.random(n_rows) < 0.1, np.nan, gap)),
            "kind": np.array(["a", "b", "c"])[kind],
            "flag": rng.random(n_rows) > 0.5,
            "day": days.astype("datetime64[s]"),
            "y": y,
        }
    )


def write_rows(path: Path, n_rows: int) -> None:
    """Write a table to a file, some rows at a time."""
    is_csv = path.suffix == ".csv"
    made: Any = arrow_csv.CSVWriter if is_csv else pq.ParquetWriter
    with made(str(path), table_of(1, 0).schema) as file:
        for start in range(0, n_rows, _AT_ONCE):
            file.write_table(table_of(min(_AT_ONCE, n_rows - start), start))


def _in_fresh_process(model: Path, path: Path, rows: int) -> Run:
    out = path.with_name(f"out{path.suffix}")
    files = [str(model), str(path), str(out)]
    command = [sys.executable, "-m", MODULE, "--child", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak, seconds, cpu = json.loads(done.stdout.splitlines()[-1])
    found = checksum(out)
    out.unlink()
    size = path.stat().st_size
    return Run(rows, path.suffix[1:], size, peak, seconds, cpu, found)


def checksum(path: Path) -> str:
    """Of all answers in a file, as float64, whatever its format and its batches."""
    columns: dict[str, Any] = {}
    with open_table(path) as table:
        for batch in table.batches():
            for name in batch.schema.names:
                values = batch.column(name).cast(pa.float64()).to_numpy()
                own = columns.setdefault(name, hashlib.sha256())
                own.update(values.tobytes())
    return "".join(f"{name} {own.hexdigest()[:8]} " for name, own in columns.items())


def _child(model: Path, path: Path, out: Path) -> int:
    from caveat.cli import main as command

    start = time.perf_counter()
    draws = ["--draws", str(N_DRAWS)]
    code = command(["predict", str(model), str(path), "-o", str(out), *draws])
    seconds = time.perf_counter() - start
    print(json.dumps([memory.peak(), seconds, time.process_time()]))
    return code


def _agree(found: Sequence[Run]) -> bool:
    """Whether files of the same rows got the same answers."""
    return len({(r.rows, r.checksum) for r in found}) == len({r.rows for r in found})


def _is_flat(found: Sequence[Run]) -> bool:
    """Below the limit, and not growing with the rows of a format."""
    return all(
        run.peak < LIMIT
        and run.peak <= GROWTH * min(r.peak for r in found if r.format == run.format)
        for run in found
    )


def _report(found: Sequence[Run]) -> Report:
    return Report(
        title="`caveat predict`: memory",
        columns=(
            *("file", "rows", "MB of file", "peak MB"),
            *("seconds", "of CPU", "rows a second"),
        ),
        rows=[
            [
                run.format,
                f"{run.rows:,}",
                f"{run.bytes / 1e6:.0f}",
                f"{run.peak / 1e6:.0f}",
                f"{run.seconds:.1f}",
                f"{run.cpu:.1f}",
                f"{run.rows / run.seconds:,.0f}",
            ]
            for run in found
        ],
        notes=(
            f"{N_DRAWS} draws a row; the peak is that of the whole process, Python and "
            f"torch included.",
            "all formats give the same answers, bit by bit"
            if _agree(found)
            else "THE ANSWERS DIFFER",
            "below 1 GB and flat" if _is_flat(found) else "NOT flat, or above 1 GB",
        ),
    )


if __name__ == "__main__":
    raise SystemExit(main())
