"""The benchmark of errors runs, and stores what it found."""

import json

from benchmarks import bench_error


def test_a_quick_run_is_stored(tmp_path):
    given = ["--quick", "--threads", "1", "--only", "W4", "--output", str(tmp_path)]
    assert bench_error.main(given) == 0
    (found,) = json.loads((tmp_path / "error.json").read_text())["workloads"]
    assert found["name"] == "W4" and found["ratio"] > 0
    assert found["needed"] in bench_error.CANDIDATES
    assert "W4" in (tmp_path / "error.md").read_text()
