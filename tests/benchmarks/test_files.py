"""The benchmark of files judges by the right numbers, and can be run."""

import pytest

from benchmarks import bench_files
from benchmarks.bench_files import Run


def run(rows, peak, kind="csv"):
    return Run(rows, kind, 1, peak, 1.0)


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
