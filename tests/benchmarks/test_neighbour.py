"""A busy process comes and goes with its block, and figures beside it are compared."""

import time
from types import SimpleNamespace

import pytest

from benchmarks import bench_sampling
from benchmarks.neighbour import busy_neighbour


def test_a_neighbour_is_busy_and_gone_afterwards():
    with busy_neighbour(longest=60) as process:
        assert process.poll() is None
    assert process.poll() is not None


def test_a_neighbour_goes_when_the_block_fails():
    with pytest.raises(ValueError, match="oops"), busy_neighbour(longest=60) as process:
        raise ValueError("oops")
    assert process.poll() is not None


def test_a_neighbour_that_stopped_early_is_an_error():
    with pytest.raises(RuntimeError, match="stopped"), busy_neighbour(longest=0):
        time.sleep(1)


@pytest.mark.parametrize(("busy", "met"), [(8.0, "yes"), (6.0, "NO")])
def test_the_quotient_is_judged(busy, met):
    workload = SimpleNamespace(name="W1")
    pair = [
        SimpleNamespace(workload=workload, ratio=ratio, met=True)
        for ratio in (10.0, busy)
    ]
    (row,) = bench_sampling._neighbour_report([tuple(pair)]).rows
    assert row == ["W1", "10.00", f"{busy:.2f}", f"{busy / 10:.2f}", "0.7", met]


@pytest.mark.slow
def test_smoke_run(capsys):
    assert bench_sampling.main(["--quick", "--only", "W4", "--neighbour"]) == 0
    assert "quotient" in capsys.readouterr().out
