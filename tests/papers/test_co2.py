"""Figures 2 and 3 of paper 001: the models, the page, and the stored numbers."""

from pathlib import Path

import numpy as np
import pytest
from caveat.papers.co2.models import (
    FAR,
    FULL,
    QUICK,
    RELU_4,
    RELU_5,
    TANH_HIGH,
    TANH_LOW,
    jobs,
    nets,
    series,
)
from caveat.papers.co2.report import Curves, beyond, growth, render, value
from caveat.papers.series.jobs import ERF_KERNEL, RELU_KERNEL, SQUARED_EXPONENTIAL

from caveat.cli import main
from caveat.data import load_co2
from caveat.papers.records import read_records
from caveat.papers.series import jobs as shared
from caveat.papers.series.points import Point

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "co2.csv"
PAGE = RESULTS.with_suffix(".md")
needs_results = pytest.mark.skipif(
    not RESULTS.exists(), reason="needs results: caveat reproduce co2"
)


def test_nets_are_the_released_ones():
    relu, low, high, flat = nets(FULL)
    assert [n.name for n in nets(FULL)] == [RELU_5, TANH_LOW, TANH_HIGH, RELU_4]
    assert [n.width for n in nets(FULL)] == [1024] * 4
    assert [n.n_hidden for n in nets(FULL)] == [4, 4, 4, 3]
    assert [n.batch_size for n in nets(FULL)] == [200] * 4
    assert (relu.rate, relu.weight_decay, relu.drop_rate) == (1e-2, 1e-6, 0.1)
    assert (low.rate, low.weight_decay, low.drop_rate) == (5e-3, 5e-7, 0.1)
    assert (high.rate, high.weight_decay, high.drop_rate) == (1e-2, 0.0, 0.2)
    assert [(n.gamma, n.power) for n in nets(FULL)] == [(1e-4, 0.25)] * 3 + [
        (1e-5, 0.1)
    ]
    assert flat.activation == relu.activation == "relu"


def test_places_are_months_up_to_the_end_of_the_papers_grid_and_one_far_away():
    data = load_co2()
    places = series(data, 1).places
    names = np.array(places.part)
    assert (names == "train").sum() == 272
    star = places.x[names == "x*"]
    assert star == data.x_test[-1] == pytest.approx(3.7237, abs=2e-3)
    assert places.x[names == "later"].min() > places.x[names == "train"].max()
    assert places.x[names == "later"].max() < star
    assert places.x[names == "far"] == FAR * star


def test_all_models_of_the_figure_are_there(tmp_path):
    task = series(load_co2(), 8)
    keys = [key for job in jobs(task, QUICK, tmp_path) for key in job.keys]
    assert len(set(keys)) == len(keys) == 4 * 3 + 3 + 2 * 2


def test_command_line_and_a_second_call_that_only_draws(tmp_path, capsys, monkeypatch):
    arguments = "reproduce co2 --quick --workers 1 --output".split()
    assert main([*arguments, str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "Iterations: 60; the paper has 1,000,000" in page
    assert "A number with no doubt attached: **holds**" in page
    assert page.count("The paper:") == 8
    assert (tmp_path / "co2_quick.png").stat().st_size > 50_000
    assert len(list((tmp_path / "co2_quick.nets").glob("*.safetensors"))) == 4
    points = read_records(tmp_path / "co2_quick.csv", Point)
    curves = Curves(points, QUICK.n_draws)
    assert beyond(curves.mc(RELU_5)) > 5.0
    assert beyond(curves.mc(TANH_LOW)) < 1.5

    def unwanted(*_):
        raise AssertionError("trained again")

    monkeypatch.setattr(shared, "train", unwanted)
    (tmp_path / "co2_quick.png").unlink()
    assert main([*arguments, str(tmp_path)]) == 0
    assert capsys.readouterr().out == page
    assert (tmp_path / "co2_quick.png").exists()


@pytest.fixture(scope="module")
def stored():
    return Curves(read_records(RESULTS, Point), FULL.n_draws)


@needs_results
def test_stored_run_is_the_full_one(stored):
    for model in (RELU_5, RELU_4, TANH_LOW, TANH_HIGH):
        assert stored.mc(model).n_steps == FULL.n_steps
        assert stored.mc(model, 10).n_steps == FULL.n_steps


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
def test_stored_page_says_what_the_numbers_say():
    points = read_records(RESULTS, Point)
    lines = PAGE.read_text()
    for part in list(render(points, load_co2(), FULL))[5:]:
        assert part in lines
