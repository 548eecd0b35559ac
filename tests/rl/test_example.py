"""examples/sb3_cartpole.py runs, and says what it did."""

import runpy
from pathlib import Path

import pytest

PATH = Path(__file__).parents[2] / "examples" / "sb3_cartpole.py"


@pytest.fixture
def example():
    return runpy.run_path(str(PATH))


def test_words(example, capsys):
    """All but the training."""
    asked = []

    def made_up(settings, seed, n_steps):
        asked.append((settings.get("exploration_final_eps"), seed, n_steps))
        return example["Result"](10.0 + seed, 100.0 * seed)

    example["main"].__globals__["train"] = made_up
    example["main"](["--quick"])
    words = capsys.readouterr().out
    assert asked == [(e, s, 1_500) for e in (0.0, 0.05) for s in (0, 1)]
    line = "while learning  10.5 ±   0.7, after  50.0 ±  70.7"
    assert words.count(line) == 2


def test_training(example):
    for name in ("THOMPSON", "GREEDY"):
        result = example["train"](example[name], 0, 600)
        assert result.learning > 5 and result.after > 5
