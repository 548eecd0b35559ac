"""A folder of tables of all formats, and what lies in a folder of results."""

import hashlib
from pathlib import Path

import pyarrow.feather as feather
import pyarrow.parquet as pq

from caveat.scoring import score
from caveat.scoring.folder import JOURNAL, LOCK
from tests.frames.data import mixed

N_ROWS = 620
N_UNITS = 9


def write_tables(folder: Path) -> Path:
    """Eight units with rows, and one without."""
    frame = mixed(300, seed=1).drop(columns=["y", "label"])
    sub = folder / "year=2024"
    sub.mkdir(parents=True)
    frame.to_parquet(folder / "a.parquet", row_group_size=80)  # 4 groups
    frame[:200].to_csv(folder / "b.csv", index=False)
    packed = {"method": "gzip", "mtime": 1}  # the same bytes at any time
    frame[:60].to_csv(sub / "c.csv.gz", index=False, compression=packed)
    feather.write_feather(frame[:40].reset_index(drop=True), str(sub / "d.feather"))
    rows = frame[:20].assign(when=frame["when"][:20].astype(str))
    rows.to_json(sub / "e.jsonl", orient="records", lines=True)
    frame[:0].to_csv(folder / "none.csv", index=False)
    (folder / "_SUCCESS").touch()
    return folder


def checksums(folder: Path) -> dict[str, str]:
    """All files but the lock and the journal, whose lines come as units end."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in found
        if path.name not in (LOCK, JOURNAL)
    }


def rows_in(folder: Path) -> int:
    return pq.read_table(folder).num_rows


def quietly(model: Path, tables: Path, output: Path, **settings):
    """In this process, if nothing else is said."""
    return score(model, tables, output, **({"n_workers": 1} | settings))
