"""examples/moments.py writes its figure and does what it says."""

import runpy
from pathlib import Path

import matplotlib as mpl
import torch

PATH = Path(__file__).parents[3] / "examples" / "moments.py"


def test_quick_run(tmp_path, capsys):
    before = dict(mpl.rcParams)
    example = runpy.run_path(str(PATH))
    target = tmp_path / "new" / "moments.png"
    example["main"](target, quick=True)
    words = capsys.readouterr().out
    assert "independent: sd" in words
    assert "correlated: sd" in words
    assert target.stat().st_size > 10_000
    assert dict(mpl.rcParams) == before


def test_means_agree_with_draws():
    example = runpy.run_path(str(PATH))
    net = example["trained"](*example["observations"](), steps=5)
    curves = example["predictions"](net, n_draws=300)
    gap = (curves["correlated"].mean - curves["draws"].mean) / curves["draws"].std
    assert gap.abs().max() < 0.5
    assert torch.equal(curves["correlated"].mean, curves["independent"].mean) is False
