"""The benchmark of scoring judges by the right numbers."""

import pytest

from benchmarks import bench_scoring
from benchmarks.bench_scoring import Run


@pytest.mark.parametrize("same", [True, False])
def test_bytes_that_differ_are_an_error(same, monkeypatch, capsys):
    found = [
        Run("local", 1, 1000, 11.0, 1.0, ("a", "b")),
        Run("local", 2, 1000, 7.0, 2.0, ("a", "b")),
        Run("ray", 1, 1000, 25.0, 5.0, ("a", "b" if same else "c")),
    ]
    monkeypatch.setattr(bench_scoring, "_runs", lambda *args: found)
    assert bench_scoring.main(["--quick"]) == int(not same)
    told = capsys.readouterr().out
    assert "two workers against one process: 2.00×" in told
    assert "+100% time a row, 4.0 s to start" in told
    assert ("THE BYTES DIFFER" in told) is not same
