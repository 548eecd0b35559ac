"""The benchmark of exported graphs runs, and its numbers are right."""

import json

import pytest
import torch

from benchmarks import bench_export


@pytest.mark.slow
def test_smoke_run(tmp_path, capsys):
    threads = torch.get_num_threads()
    try:
        arguments = ["--quick", "--threads", "1", "--output", str(tmp_path)]
        assert bench_export.main(arguments) == 0
    finally:
        torch.set_num_threads(threads)
    assert "Exported graphs" in capsys.readouterr().out
    stored = json.loads((tmp_path / "export.json").read_text())
    assert len(stored["cases"]) == sum(len(c.rows) for c in bench_export.CASES)
    assert all(case["gap"] < 1e-5 for case in stored["cases"])
