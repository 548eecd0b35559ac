"""The benchmark of moments runs, and what docs/moments.md says is what it stored."""

import json

import pytest
import torch

from benchmarks import bench_moments
from benchmarks.bench_moments import PAGE, STORED, quoted
from benchmarks.trained import Trained, mlp


@pytest.mark.slow
def test_smoke_run(tmp_path, capsys):
    threads = torch.get_num_threads()
    try:
        arguments = ["--quick", "--threads", "1", "--output", str(tmp_path)]
        assert bench_moments.main(arguments) == 0
    finally:
        torch.set_num_threads(threads)
    assert "Speed of moments" in capsys.readouterr().out
    stored = json.loads((tmp_path / "moments.json").read_text())
    assert {record["method"] for record in stored["speed"]} == {"propagated"}
    assert (tmp_path / "moments.md").read_text().count("## ") == 4


def test_an_exact_network_deviates_by_sampling_error_only():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = mlp([3, 32, 2], torch.nn.ReLU, 0.5).eval()
        net = Trained("head", model, torch.randn(20, 3))
    for record in bench_moments.deviations(net, 4000):
        assert record["mean"] < 0.08
        assert all(0.9 < ratio < 1.1 for ratio in record["sd_ratio"])


def test_quotes_replace_what_stood_there():
    page = "a\n<!-- moments:begin -->\nold\n<!-- moments:end -->\nb\n"
    found = quoted(page, "# Moments\n\n`command`\n\n## Speed\n\n| 1 |\n")
    assert "old" not in found
    assert "### Speed\n\n| 1 |\n<!-- moments:end -->" in found
    assert quoted(found, "# Moments\n\n`command`\n\n## Speed\n\n| 1 |\n") == found


@pytest.mark.skipif(not STORED.exists(), reason="no results are stored")
def test_the_page_quotes_the_stored_results():
    text = PAGE.read_text()
    assert quoted(text, STORED.read_text()) == text
    assert "### Speed of moments" in text
