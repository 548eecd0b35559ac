"""Figures 2 and 3 of paper 001: the models, the page, and the stored numbers."""

from pathlib import Path

import numpy as np
import pytest

from caveat.cli import main
from caveat.data import load_co2
from caveat.papers.records import read_records
from caveat.papers.series import models
from caveat.papers.series.co2 import (
    CO2,
    FAR,
    FIT_FLAT,
    FIT_HIGH,
    FIT_LOW,
    FIT_RELU,
    TANH_HIGH,
    TANH_LOW,
    beyond,
    growth,
    missed,
    value,
)
from caveat.papers.series.models import (
    ERF_KERNEL,
    RELU_4,
    RELU_5,
    RELU_KERNEL,
    SQUARED_EXPONENTIAL,
)
from caveat.papers.series.points import Point

RESULTS = Path(__file__).parents[3] / "docs" / "results"
FULL = CO2(RESULTS)
needs_results = pytest.mark.skipif(
    not (RESULTS / "co2.csv").exists(), reason="needs results: caveat reproduce co2"
)


def test_nets_are_the_released_ones():
    relu, low, high, flat = FULL.nets
    assert [n.name for n in FULL.nets] == [RELU_5, TANH_LOW, TANH_HIGH, RELU_4]
    assert [n.width for n in FULL.nets] == [1024] * 4
    assert [n.n_hidden for n in FULL.nets] == [4, 4, 4, 3]
    assert [n.batch_size for n in FULL.nets] == [200] * 4
    assert (relu.rate, relu.weight_decay, relu.drop_rate) == (1e-2, 1e-6, 0.1)
    assert (low.rate, low.weight_decay, low.drop_rate) == (5e-3, 5e-7, 0.1)
    assert (high.rate, high.weight_decay, high.drop_rate) == (1e-2, 0.0, 0.2)
    assert [(n.gamma, n.power) for n in FULL.nets] == [(1e-4, 0.25)] * 3 + [(1e-5, 0.1)]
    assert flat.activation == relu.activation == "relu"


def test_places_are_months_up_to_the_end_of_the_papers_grid_and_one_far_away():
    data = load_co2()
    places = FULL.task.places
    names = np.array(places.part)
    assert (names == "train").sum() == 91  # every third of 272
    star = places.x[names == "x*"]
    assert star == data.x_test[-1] == pytest.approx(3.7237, abs=2e-3)
    assert places.x[names == "later"].min() > places.x[names == "train"].max()
    assert places.x[names == "later"].max() < star
    assert places.x[names == "far"] == FAR * star


def test_all_models_of_the_figure_are_there():
    curves = [key for job in FULL.jobs([]) for key in FULL.keys(job)]
    assert len(set(curves)) == len(curves) == 8 * 3 + 3 + 4 * 2


def test_command_line_and_a_second_call_that_only_draws(tmp_path, monkeypatch):
    arguments = "reproduce co2 --quick --workers 1 --output".split()
    assert main([*arguments, str(tmp_path)]) == 0
    (page,) = (path.read_text() for path in tmp_path.glob("*.md"))
    assert "Iterations: 60; the paper has 1,000,000" in page
    assert "A number with no doubt attached: **not judged**" in page
    assert page.count("The paper:") == 10
    assert (tmp_path / "co2_quick.png").stat().st_size > 50_000
    assert len(list((tmp_path / "co2_quick.nets").glob("*.safetensors"))) == 8
    points = read_records(tmp_path / "co2_quick.csv", Point)
    curves = CO2(tmp_path, quick=True).curves(points)
    assert beyond(curves.mc(RELU_5)) > 5.0
    assert beyond(curves.mc(TANH_LOW)) < 1.5

    def unwanted(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(models, "train", unwanted)
    (tmp_path / "co2_quick.png").unlink()
    assert main([*arguments, str(tmp_path)]) == 0
    assert [path.read_text() for path in tmp_path.glob("*.md")] == [page]
    assert (tmp_path / "co2_quick.png").exists()


@pytest.fixture(scope="module")
def stored():
    return FULL.curves(read_records(FULL.path("csv"), Point))


@needs_results
def test_stored_run_is_the_full_one(stored):
    for model in (RELU_5, RELU_4, TANH_LOW, TANH_HIGH):
        assert stored.mc(model).n_steps == FULL.effort.n_steps
        assert stored.mc(model, 10).n_steps == FULL.effort.n_steps


@needs_results
def test_stored_relu_grows_at_least_threefold_to_the_far_right(stored):
    for model in (RELU_5, RELU_4):
        assert growth(stored.mc(model)) >= 3.0
        assert beyond(stored.mc(model)) >= 5.0
    assert growth(stored.mc(RELU_5, 10)) >= 3.0
    assert growth(stored.process(SQUARED_EXPONENTIAL)) >= 3.0
    assert growth(stored.process(RELU_KERNEL)) >= 3.0
    assert beyond(stored.process(RELU_KERNEL)) >= 5.0


@needs_results
def test_stored_tanh_stays_bounded(stored):
    for model in (TANH_LOW, TANH_HIGH):
        assert beyond(stored.mc(model)) <= 1.5
        assert growth(stored.mc(model)) < growth(stored.mc(RELU_5))
    assert beyond(stored.process(ERF_KERNEL)) <= 1.5


@needs_results
def test_stored_standard_dropout_is_a_number_without_doubt(stored):
    standard = stored.standard(RELU_5)
    assert np.isnan(standard.column("sd")).all()
    assert np.isfinite(value(standard))
    truth = standard.part("x*").column("y")[0]
    assert abs(value(standard) - truth) > 1.0  # nor is it right


@needs_results
def test_stored_nets_fit_the_season_where_claims_are_judged(stored):
    for model in (FIT_RELU, FIT_FLAT, FIT_LOW, FIT_HIGH):
        assert stored.mc(model).fits
    for model in (FIT_LOW, FIT_HIGH):
        assert beyond(stored.mc(model)) <= 1.5
    for model in (RELU_5, RELU_4, TANH_LOW, TANH_HIGH):
        assert not stored.mc(model).fits
    page = FULL.path("md").read_text()
    assert "2,000 steps of Adam" in page and "**not judged**" not in page


@needs_results
def test_what_was_measured_at_x_star_is_compared_with_what_is_drawn(stored):
    """2 sd are drawn: by hand, from the numbers of the table."""
    truth = float(stored.mc(FIT_RELU).part("x*").column("y")[0])
    for model in (FIT_RELU, FIT_LOW):
        curve = stored.mc(model)
        by_hand = abs(truth - value(curve)) / curve.part("x*").sd
        assert missed(curve) == pytest.approx(by_hand)
    assert missed(stored.mc(FIT_RELU)) < 2.0 < missed(stored.mc(FIT_LOW))
