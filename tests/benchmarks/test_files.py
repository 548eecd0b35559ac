"""The benchmark of files judges by the right numbers, and can be run."""

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from benchmarks import bench_files
from benchmarks.bench_files import Run
from benchmarks.results import Provenance


def run(rows, peak, kind="csv", checksum="same"):
    return Run(rows, kind, 1, peak, 1.0, 1.0, checksum)


@pytest.mark.parametrize(
    ("peaks", "fine"),
    [((5e8, 5.5e8), True), ((5e8, 7e8), False), ((1.1e9, 1.1e9), False)],
)
def test_the_goal_is_flat_memory(peaks, fine, monkeypatch, capsys):
    found = [run(10, peaks[0]), run(100, peaks[1]), run(10, 1e8, "parquet")]
    monkeypatch.setattr(bench_files, "_runs", lambda *args: found)
    assert bench_files.main(["--rows", "100"]) == int(not fine)
    assert bench_files.main(["--rows", "100", "--quick"]) == 0
    assert "100" in capsys.readouterr().out


def test_answers_must_not_depend_on_the_format(monkeypatch, capsys):
    found = [run(10, 1e8), run(10, 1e8, "parquet", "other")]
    monkeypatch.setattr(bench_files, "_runs", lambda *args: found)
    assert bench_files.main(["--rows", "10", "--quick"]) == 1
    assert "THE ANSWERS DIFFER" in capsys.readouterr().out


def test_the_checksum_is_of_numbers_not_of_files(tmp_path):
    table = pa.table({"y_mean": [0.1, 1e-300, 3.0], "y_std": [1.0, 2.0, 1 / 3]})
    arrow_csv.write_csv(table, tmp_path / "a.csv")
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(table.slice(0, 2), tmp_path / "b.parquet")
    own = bench_files.checksum(tmp_path / "a.csv")
    assert own == bench_files.checksum(tmp_path / "a.parquet")
    assert own != bench_files.checksum(tmp_path / "b.parquet")


def test_finished_runs_are_kept(tmp_path, monkeypatch):
    calls = []

    def measured(model, path, rows):
        calls.append(rows)
        return run(rows, 1e8)

    monkeypatch.setattr(bench_files, "_in_fresh_process", measured)
    for _ in range(2):
        bench_files.main(
            ["--rows", "500", "--formats", "csv", "--cache", str(tmp_path)]
        )
    assert calls == [5, 50, 500]


def test_where_finished_runs_lie_is_not_stored():
    given = ["--cache", "/some/where", "--rows", "5", "--output=/else/where"]
    assert Provenance.now("m", given).command == "python -m m --rows 5"
