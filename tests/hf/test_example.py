"""examples/lora.py runs, goes on, and its stored page follows from its numbers."""

import os
import runpy
from pathlib import Path

import pytest

pytest.importorskip("peft")
ROOT = Path(__file__).parents[2]
STORED = ROOT / "docs" / "results" / "lora.csv"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(ROOT / "examples" / "lora.py"))


def test_the_stored_page_follows_from_the_stored_numbers(example):
    if not STORED.exists():
        pytest.skip("docs/results/lora.csv is absent: run examples/lora.py")
    records = example["read_records"](STORED, example["Score"])
    assert STORED.with_suffix(".md").read_text() == example["page"](records, False)
    assert len(records) == 3 * example["N_SEEDS"]


def test_a_difference_is_taken_seed_by_seed(example):
    score = example["Score"]
    records = [
        score(seed, method, nll, 0.1, 0.8)
        for seed in range(2)
        for method, nll in (("MAP", 0.5 + seed), ("ensemble", 0.4 + seed))
    ]
    assert example["gaps"](records) == "ensemble -0.1000 ± 0.0000"


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("CAVEAT_DATA"), reason="needs CAVEAT_DATA")
def test_a_quick_run_is_stored_and_taken_up(example, tmp_path, capsys):
    example["main"](["--quick", "--output", str(tmp_path)])
    page = (tmp_path / "lora_quick.md").read_text()
    assert "MC dropout of LoRA" in page and "320 sentences" in page
    capsys.readouterr()
    example["main"](["--quick", "--output", str(tmp_path)])
    assert "seed 0:" not in capsys.readouterr().out
    assert (tmp_path / "lora_quick.md").read_text() == page
