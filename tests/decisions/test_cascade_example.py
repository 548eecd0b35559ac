"""examples/cascade.py runs, and keeps its word."""

import re
import runpy
from dataclasses import replace
from pathlib import Path

import torch

PATH = Path(__file__).parents[2] / "examples" / "cascade.py"


def test_quick_run(tmp_path, capsys):
    example = runpy.run_path(str(PATH))
    task = replace(example["digits"](), n_steps=150)
    example["main"].__globals__["digits"] = lambda: task
    state = torch.random.get_rng_state()
    example["main"](["--output", str(tmp_path / "new")])
    assert torch.equal(torch.random.get_rng_state(), state)
    words = capsys.readouterr().out
    accuracies = [float(a) for a in re.findall(r"always convnet +([\d.]+)%", words)]
    assert len(accuracies) == 2
    assert min(accuracies) > 90
    assert "without what the person costs" in words or "100.00%" in words
    seen = [int(n) for n in re.search(r"saw: \((.*)\)", words)[1].split(",")]
    assert seen[0] == 550 > seen[1] > seen[2]
    assert (tmp_path / "new" / "cascade.png").stat().st_size > 10_000


def test_parts_do_not_overlap():
    task = runpy.run_path(str(PATH))["digits"]()
    assert [len(p.y) for p in (task.train, task.held_out, task.test)] == [697, 550, 550]
