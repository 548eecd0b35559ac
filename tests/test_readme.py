"""The quick starts of README.md run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import caveat
from tests.zoo.models import ZOO

TEXT = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)


def net(outputs: int) -> nn.Module:
    return nn.Sequential(nn.Linear(4, 9), nn.Dropout(0.1), nn.Linear(9, outputs))


def confident(rows: int) -> caveat.CategoricalPredictive:
    """Two classes in turn, known for sure."""
    logits = 8.0 * torch.eye(2).repeat(rows, 1)[:rows]
    return caveat.CategoricalPredictive.from_logits(logits.expand(3, rows, 2))


def given(code: str) -> dict[str, object]:
    """What a block takes for granted."""
    return {
        "caveat": caveat,
        "model": net(1),
        "convnet": net(3),
        "x": torch.randn(5, 4),
        "tau": 4.0,
        "images": torch.randn(5, 4),
        "X": np.linspace(-1, 1, 24).reshape(12, 2) ** 2,
        "y": np.linspace(0, 1, 12) if "X" in code else torch.randn(5, 1),
        "X_new": np.zeros((3, 2)),
        "y_new": np.zeros(3),
        "held_out": confident(400),
        "labels": torch.arange(400) % 2,
        "predictive": confident(5),
    }


@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: code.split("\n", 1)[0][:40])
def test_block_runs(code):
    if "from_pretrained" in code:
        pytest.skip("loads a model from the hub; the zoo runs such models from configs")
    exec(code, given(code))


def test_the_zoo_has_the_size_that_is_claimed():
    assert f" {len(ZOO)} awkward models" in TEXT


def test_every_block_was_found():
    assert len(BLOCKS) == 8
