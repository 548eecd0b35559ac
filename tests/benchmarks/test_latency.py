"""The benchmark of few rows: its cases run, and it judges by the right figures."""

import json
from itertools import pairwise

import pytest
import torch

from benchmarks import bench_latency, latency_cases
from benchmarks.bench_latency import How, Latency
from benchmarks.floors import deterministic_pass
from benchmarks.guard import Verdict
from benchmarks.latency_cases import CALLS, CASES, LatencyCase, select
from benchmarks.timing import Timing
from benchmarks.workloads import Target

RIGHT, WRONG = Verdict(1.0, 1.0, 10), Verdict(9.0, 1.0, 10)
EXTRA = {"BERT", "BART", "Whisper", "Wav2Vec2", "BERT, new length"}
over_cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def same(seconds: float) -> Timing:
    return Timing(seconds, seconds, seconds)


def latency(**change) -> Latency:
    given = {
        "name": "x",
        "rows": 1,
        "target": Target(4, passes=2),
        "verdict": RIGHT,
        "naive": same(1.0),
        "ours": same(0.2),
        "one_pass": same(0.1),
        "judged": True,
    }
    return Latency(**(given | change))


def needs_extra(case: LatencyCase) -> None:
    if case.name in EXTRA:
        pytest.importorskip("transformers")


@over_cases
def test_every_call_has_other_values(case):
    needs_extra(case)
    model = case.model()
    stream = case.stream(model, 2)
    found = [case.task.read(deterministic_pass(next(stream))()) for _ in range(3)]
    assert len(found[0]) == 2
    assert all(
        one.shape != two.shape or not torch.equal(one, two)
        for one, two in pairwise(found)
    )
    first = next(case.stream(model, 2))
    assert torch.equal(case.task.read(deterministic_pass(first)()), found[0])


def test_shapes_are_the_same_unless_lengths_are_new():
    for case in CASES:
        shapes = {
            tuple(tuple(x.shape) for x in case.inputs(1, call).values())
            for call in range(CALLS)
        }
        assert len(shapes) == (CALLS if case.name == "BERT, new length" else 1)


def test_targets_are_judged_by_ratio_passes_and_guard():
    assert latency().met is True
    assert latency(ours=same(0.3)).met is False  # too slow for both
    assert latency(one_pass=same(0.05)).met is False
    assert latency(target=Target(4), one_pass=same(0.05)).met is True
    assert latency(verdict=WRONG).met is False
    assert latency(judged=False).met is None


def test_one_case_is_measured():
    (case,) = select(["pack"])
    found = bench_latency.measured(
        case, 1, How(True, 1, bench_latency.time.perf_counter)
    )
    assert found.verdict.ok
    assert found.ratio > 0
    assert found.met is None


def test_results_are_stored(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench_latency, "measured", lambda *_: latency(verdict=WRONG))
    monkeypatch.setattr(bench_latency, "estimator", lambda how: latency(name="fit"))
    assert bench_latency.main(["--output", str(tmp_path)]) == 1
    record = json.loads((tmp_path / "latency.json").read_text())
    assert len(record["cases"]) == sum(len(case.targets) for case in CASES) + 1
    assert record["cases"][-1]["met"] is True
    assert "Few rows" in (tmp_path / "latency.md").read_text()
    assert "FAIL" in capsys.readouterr().out


def test_names_of_other_benchmarks_select_nothing(monkeypatch):
    assert latency_cases.select(["W1"]) == ()
    assert bench_latency.main(["--only", "W1"]) == 0


def test_the_estimator_is_compared_with_its_network():
    found = bench_latency.estimator(How(True, 1, bench_latency.time.process_time))
    assert found.verdict.ok
    assert found.target.passes == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The rows of EarlyExit are not independent")
@pytest.mark.filterwarnings("ignore:DropThenPack draws noise at")
def test_smoke_run(capsys):
    assert bench_latency.main(["--quick"]) == 0
    assert "BART" in capsys.readouterr().out
