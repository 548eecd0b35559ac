"""The benchmark of predictions runs and judges by the right ratio."""

import pytest

import caveat
from benchmarks import bench_predict
from benchmarks.bench_predict import Answers


def test_times_of_one_process(tmp_path):
    caveat.save(bench_predict.fitted("bernoulli"), tmp_path / "m")
    found = bench_predict.measured(tmp_path / "m")
    assert min(vars(found).values()) > 0


def test_the_goal_is_about_noise_on_units(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench_predict, "FOLDER", tmp_path)
    times = {"bernoulli": 0.2, "gaussian": 0.3, "Concrete": 0.9}

    def runs(name, repetitions):
        return [Answers(1.0, times[name], 1.0, 1.0, 1.0)] * repetitions

    monkeypatch.setattr(bench_predict, "_runs", runs)
    assert bench_predict.main([]) == 0
    times["gaussian"] = 0.4
    assert bench_predict.main([]) == 1
    assert bench_predict.main(["--quick"]) == 0
    assert "0.40" in capsys.readouterr().out
    assert "Predicting one row" in (tmp_path / "predict.md").read_text()


@pytest.mark.slow
def test_smoke_run(capsys):
    assert bench_predict.main(["--quick"]) == 0
    assert "Concrete" in capsys.readouterr().out
