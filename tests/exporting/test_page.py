"""The blocks of docs/export.md run as they stand, one after the other."""

import re
from pathlib import Path

import torch
from torch import nn

import caveat

PAGE = Path(__file__).parents[2] / "docs" / "export.md"


def test_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    net = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.2), nn.Linear(3, 1))
    known = {"mc": caveat.MCDropout(net, seed=0), "example": torch.randn(3, 2)}
    for block in blocks:
        exec(block, known)
    assert len(blocks) == 3 and (tmp_path / "net.onnx").exists()
