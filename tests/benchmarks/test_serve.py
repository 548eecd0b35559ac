"""The benchmark of the server judges by the right numbers."""

from collections import Counter

import pytest

from benchmarks import bench_serve
from benchmarks.bench_serve import Seen


def seen(codes=None, latency=0.04, memory=(100,) * 8):
    return Seen(10.0, Counter(codes or {200: 100}), [latency] * 100, list(memory))


@pytest.mark.parametrize(
    ("found", "fine"),
    [
        (seen(), True),
        (seen(latency=0.056), False),
        (seen({200: 99, 503: 1}), False),
        (seen(memory=(50, 50, 100, 100, 101, 101, 101, 101)), True),
        (seen(memory=(100, 100, 100, 100, 102, 103, 103, 103)), False),
    ],
)
def test_the_goals_under_load(found, fine):
    assert bench_serve._is_fine(found) == fine


@pytest.mark.parametrize(("plain", "code"), [(10.0, 0), (20.0, 1)])
def test_the_goal_is_ten_times_the_plain_loop(monkeypatch, capsys, plain, code):
    monkeypatch.setattr(bench_serve, "_beside", lambda *_: (100.0, plain))
    assert bench_serve.main(["--models", "mlp"]) == code
    assert bench_serve.main(["--models", "mlp", "--quick"]) == 0
    assert "ratio" in capsys.readouterr().out
