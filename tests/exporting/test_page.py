"""The blocks of docs/export.md run as they stand, one after the other."""

import torch
from torch import nn

import caveat
from tests.pages import run_page


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.2), nn.Linear(3, 1))
    known = {"mc": caveat.MCDropout(net, seed=0), "example": torch.randn(3, 2)}
    run_page("docs/export.md", known)
    assert (tmp_path / "net.onnx").exists()
