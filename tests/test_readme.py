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
        "x_cal": torch.randn(6, 4),
        "y_cal": torch.randn(6, 1),
        "images": torch.randn(5, 4),
        "X": np.linspace(-1, 1, 24).reshape(12, 2) ** 2,
        "y": np.linspace(0, 1, 12) if "X" in code else torch.randn(5, 1),
        "X_new": np.zeros((3, 2)),
        "y_new": np.zeros(3),
        "held_out": confident(400),
        "labels": torch.arange(400) % 2,
        "predictive": confident(5),
    }


def from_the_hub(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """A small model and its tokens in place of what would be downloaded."""
    import transformers

    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.BertConfig(vocab_size=30, intermediate_size=16, **sizes)
    model = transformers.BertForSequenceClassification(config)
    tokens = {
        k: torch.ones(2, 5, dtype=torch.long) for k in ("input_ids", "attention_mask")
    }

    def tokenize(texts, padding, return_tensors):
        assert padding and return_tensors == "pt" and len(texts) == 2
        return transformers.BatchEncoding(tokens)

    for name, found in (
        ("AutoModelForSequenceClassification", model),
        ("AutoTokenizer", tokenize),
    ):
        load = staticmethod(lambda name, found=found: found)
        monkeypatch.setattr(getattr(transformers, name), "from_pretrained", load)
    return {"caveat": caveat, "texts": ["good", "bad"]}


@pytest.mark.parametrize("code", BLOCKS, ids=lambda code: code.split("\n", 1)[0][:40])
def test_block_runs(code, monkeypatch):
    hub = "from_pretrained" in code
    exec(code, from_the_hub(monkeypatch) if hub else given(code))


def test_the_first_block_runs_as_pasted_and_shows_what_it_says(capsys):
    """With nothing before it; far from the data it is less sure."""
    known: dict[str, object] = {}
    exec(BLOCKS[0], known)
    assert f"```\n\n```text\n{capsys.readouterr().out}```" in TEXT
    near, _, far = known["predictive"].std[:, 0].tolist()
    assert far > 1.5 * near


def test_what_is_said_of_installing_is_true():
    """Nothing is published: no line installs the name from an index."""
    assert not re.search(r"pip install ['\"]?caveat", TEXT)
    assert "make wheel" in TEXT
    makefile = (Path(__file__).parent.parent / "Makefile").read_text()
    assert re.search(r"^wheel:.*##", makefile, re.MULTILINE)


def test_the_headline_says_what_the_table_shows():
    """One pass only for dropout near the end; a fraction of T passes elsewhere."""
    head, table = TEXT.split("```", 1)[0], TEXT.split("## How fast")[1]
    assert "near the end" in head and "a fraction of the T passes" in head
    for line in re.findall(r"^\| [^|]*dropout[^|]*\|.*$", table, re.MULTILINE):
        name, _, ours, _, one_pass, *_ = (c.strip() for c in line.strip("|").split("|"))
        seconds = float(ours.removesuffix(" s"))
        one = float(one_pass.removesuffix(" ms")) / 1000
        if "before the last layer" in name:
            assert seconds < 2 * one, line  # little more than a pass
        else:
            assert seconds > 2 * one, line  # which is not claimed of these


def test_the_zoo_has_the_size_that_is_claimed():
    assert f" {len(ZOO)} awkward models" in TEXT


def test_every_block_was_found():
    assert len(BLOCKS) == 8
