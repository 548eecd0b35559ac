"""What the panels of Table 1 show, and where they are cut."""

import pytest

from caveat.papers.style import house_style
from caveat.papers.table1.comparison import SplitMean, rows
from caveat.papers.table1.drawing import Entry, entries, metric_figure, shown_range
from tests.papers.table1.records import a_record


def entry(mean, error=0.1, *, name="VI", ours=False):
    return Entry(name, SplitMean(mean, error), ours)


NEAR = [entry(3.0, ours=True), entry(3.4), entry(3.6)]


def test_a_value_far_on_the_worse_side_is_cut_off():
    shown = shown_range([*NEAR, entry(30.0)], "rmse")
    assert shown.low < 2.9 and 3.7 < shown.high < 4.0
    assert shown_range([*NEAR, entry(-30.0)], "ll").low > -30.0


def test_ours_and_better_values_are_always_shown():
    assert shown_range([*NEAR, entry(30.0, ours=True)], "rmse").high > 30.0
    assert shown_range([*NEAR, entry(30.0)], "ll").high > 30.0


def test_no_error_bar_reaches_below_an_rmse_of_zero():
    """Naval's published errors are larger than the value."""
    ours = entry(0.002, 0.0001, ours=True)
    shown = shown_range([ours, entry(0.01, 0.05)], "rmse")
    assert -0.1 * shown.high < shown.low <= 0.0
    assert shown_range([ours, entry(0.01, 0.05)], "ll").low < -0.03


@pytest.fixture
def one_set(real_data):
    return rows([a_record(split=k, rmse=3.0 + 0.1 * k) for k in range(3)])


def test_a_set_has_ours_first_and_each_published_row(one_set):
    found = entries(one_set, "rmse")
    assert found[0].is_ours and found[0].name == "ours, published precision"
    assert {e.name for e in found[1:]} >= {"VI", "PBP", "Deep Ensembles"}


@pytest.mark.parametrize("metric", ["rmse", "ll"])
def test_nine_sets_are_at_most_1200_pixels_high(metric, one_set):
    nine = [row for _ in range(9) for row in one_set]
    for k, row in enumerate(nine):
        nine[k] = type(row)(**(vars(row) | {"dataset": f"set {k}"}))
    with house_style():
        figure = metric_figure(nine, metric)
    assert figure.get_size_inches()[1] * figure.dpi <= 1200
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == [f"set {k}" for k in range(9)]
