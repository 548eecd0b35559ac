"""The benchmark of the server judges by the right numbers."""

from collections import Counter

import pytest

from benchmarks import bench_serve
from benchmarks.bench_serve import Seen


def seen(codes=None, latency=0.04, memory=(100,) * 40):
    return Seen(10.0, Counter(codes or {200: 100}), [latency] * 100, list(memory))


@pytest.mark.parametrize(
    ("found", "fine"),
    [
        (seen(), True),
        (seen(latency=0.056), False),
        (seen({200: 99, 503: 1}), False),
        (seen(memory=(50, 50, *(100,) * 10, *(101,) * 28)), True),  # a start
        (seen(memory=(100,) * 10 + (103,) * 30), False),
        (seen(memory=range(1000, 1040)), False),  # it goes on and on
    ],
)
def test_the_goals_under_load(found, fine):
    assert bench_serve._is_fine(found) == fine


@pytest.mark.parametrize(("plain", "code"), [(10.0, 0), (20.0, 1)])
def test_the_goal_is_ten_times_the_plain_loop(monkeypatch, capsys, plain, code):
    rates = [Seen(1.0, Counter({200: int(rate)})) for rate in (100.0, plain)]
    monkeypatch.setattr(bench_serve, "_beside", lambda *_: tuple(rates))
    assert bench_serve.main(["--models", "mlp"]) == code
    assert bench_serve.main(["--models", "mlp", "--quick"]) == 0
    assert "ratio" in capsys.readouterr().out


def test_only_whole_runs_are_stored(monkeypatch, capsys):
    stored = []
    rate = Seen(1.0, Counter({200: 100}))
    monkeypatch.setattr(bench_serve, "_beside", lambda *_: (rate, rate))
    monkeypatch.setattr(bench_serve, "_under_load", lambda *_: seen())
    monkeypatch.setattr(bench_serve, "store_markdown", lambda *own: stored.append(own))
    for given in (["--seconds", "5"], ["--quick"], ["--models", "mlp"]):
        bench_serve.main(["--load", *given])
        assert not stored and "Not stored" in capsys.readouterr().out
    bench_serve.main(["--load"])
    assert stored
