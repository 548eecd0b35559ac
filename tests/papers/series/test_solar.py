"""Appendix D.1 of paper 001: the gaps, the page, and the stored numbers."""

from pathlib import Path

import numpy as np
import pytest

from caveat.cli import main
from caveat.data import load_solar
from caveat.papers.records import read_records
from caveat.papers.series.models import (
    ERF_KERNEL,
    RELU_4,
    RELU_5,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
)
from caveat.papers.series.points import Point
from caveat.papers.series.solar import Solar, named_curves, widening

RESULTS = Path(__file__).parents[3] / "docs" / "results"
FULL = Solar(RESULTS)
needs_results = pytest.mark.skipif(
    not (RESULTS / "solar.csv").exists(), reason="needs results: caveat reproduce solar"
)


def test_relu_nets_are_the_released_ones():
    relu, tanh, flat = FULL.nets
    assert (relu.n_hidden, relu.rate, relu.weight_decay) == (4, 5e-2, 5e-6)
    assert (flat.n_hidden, flat.rate, flat.weight_decay) == (3, 3e-2, 3e-6)
    assert (tanh.activation, tanh.n_hidden) == ("tanh", 4)
    assert {n.batch_size for n in FULL.nets} == {275}
    assert {(n.drop_rate, n.gamma, n.power) for n in FULL.nets} == {(0.1, 1e-4, 0.25)}


def test_no_gap_is_learnt_from(real_data):
    data = load_solar()
    task = FULL.task
    names = np.array(task.places.part)
    gaps = task.places.x[names == "gap"]
    np.testing.assert_array_equal(gaps, data.test.x)
    assert not set(gaps) & set(task.x)
    assert set(task.places.x[names == "train"]) <= set(task.x)
    assert len(task.x) == 275


def test_command_line(tmp_path, real_data):
    arguments = "reproduce solar --quick --workers 1 --output".split()
    assert main([*arguments, str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "Iterations: 60; the paper has 1,000,000" in page
    assert "points 17-36" in page and "points 317-336" in page
    assert (tmp_path / "solar_quick.png").stat().st_size > 50_000
    points = read_records(tmp_path / "solar_quick.csv", Point)
    assert sum(p.part == "gap" for p in points) == 100 * (6 * 3 + 3)


@pytest.fixture(scope="module")
def stored():
    return named_curves(FULL.curves(read_records(FULL.path("csv"), Point)))


@needs_results
def test_stored_processes_widen_in_the_gaps_and_cover(stored):
    for name, least in (
        (SQUARED_EXPONENTIAL, 0.75),
        (RELU_KERNEL, 0.85),
        (ERF_KERNEL, 0.85),
    ):
        curve = stored[f"GP, {name}"]
        assert widening(curve) > 2.0
        assert curve.part("gap").coverage(noise=True) >= least


@needs_results
def test_stored_nets_learnt_and_cover_with_noise(stored):
    for model, error in ((RELU_5, 0.4), (RELU_4, 0.65)):  # a line leaves 0.66
        curve = stored[f"{model}, T = {FULL.effort.n_draws}"]
        assert curve.n_steps == FULL.effort.n_steps
        assert curve.part("train").error < error
        assert curve.part("gap").coverage(noise=True) >= 0.85
        without = curve.part("gap").coverage(noise=False)
        assert without < curve.part("gap").coverage(noise=True)
