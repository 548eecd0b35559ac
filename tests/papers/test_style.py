"""The look that figures share."""

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from caveat.papers.style import (
    HALF_SDS,
    WIDTH,
    house_style,
    ink,
    legend_below,
    line,
    name_axes,
    name_outer,
    panels,
    shades,
)


def test_a_grid_has_the_width_of_the_house():
    figure, grid = panels(2, 3, height=4.0)
    assert grid.shape == (2, 3)
    assert tuple(figure.get_size_inches()) == (WIDTH, 4.0)


def test_the_style_ends_with_the_drawing():
    before = matplotlib.rcParams["font.size"]

    @house_style()
    def draw():
        return matplotlib.rcParams["font.size"]

    assert draw() == draw() == 8.0
    assert matplotlib.rcParams["font.size"] == before


@pytest.mark.parametrize("style", [ink, line])
def test_curves_are_told_apart_without_colour(style):
    looks = [(style(k)["color"], str(style(k)["linestyle"])) for k in range(6)]
    assert len(set(looks)) == 6
    for colour, _ in looks:
        assert len(set(to_rgb(colour))) == 1  # a grey


def test_shades_reach_two_standard_deviations():
    _, grid = panels(height=2.0)
    x = np.linspace(0.0, 1.0, 5)
    shades(grid[0, 0], x, np.zeros(5), np.full(5, 3.0))
    assert len(grid[0, 0].collections) == len(HALF_SDS)
    assert grid[0, 0].dataLim.ymax == pytest.approx(6.0)
    assert grid[0, 0].dataLim.ymin == pytest.approx(-6.0)


def test_axes_are_named():
    _, grid = panels(height=2.0)
    name_axes(grid[0, 0], "CO2", "year", "ppm")
    axes = grid[0, 0]
    assert (axes.get_title(), axes.get_xlabel(), axes.get_ylabel()) == (
        "CO2",
        "year",
        "ppm",
    )


def test_outer_axes_are_named():
    _, grid = panels(2, 2, height=2.0)
    name_outer(grid, "year", "ppm")
    assert [axes.get_xlabel() for axes in grid.ravel()] == ["", "", "year", "year"]
    assert [axes.get_ylabel() for axes in grid.ravel()] == ["ppm", "", "ppm", ""]


def test_a_legend_names_what_is_drawn_in_a_panel():
    figure, grid = panels(height=2.0)
    grid[0, 0].plot([0, 1], label="ours")
    legend_below(figure, grid[0, 0], ncols=1)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["ours"]
