"""The look that figures share."""

from itertools import combinations

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
    assert len({str(style(k)["linestyle"]) for k in range(7)}) == 7


# sRGB as seen without red or without green cones (Vienot, Brettel, Mollon 1999)
DICHROMATS = (
    [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]],
    [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]],
)
TO_XYZ = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
NOTICED = 2.3  # the smallest difference in CIE Lab that is seen (Mahy et al. 1994)


def test_curves_are_told_apart_by_colour():
    """By dichromats, too: four times as far apart as has to be, lines being thin."""
    colours = [to_rgb(ink(k)["color"]) for k in range(7)]
    assert all(_least_gap(colours, eye) > 4 * NOTICED for eye in DICHROMATS)


def test_red_and_green_would_not_be():
    """So the test above can fail: matplotlib's own cycle does."""
    colours = [to_rgb(f"C{k}") for k in range(7)]
    assert any(_least_gap(colours, eye) < 4 * NOTICED for eye in DICHROMATS)


def _least_gap(colours, eye):
    seen = [_lab(np.clip(np.array(eye) @ _linear(colour), 0, 1)) for colour in colours]
    return min(np.linalg.norm(a - b) for a, b in combinations(seen, 2))


def _linear(colour):
    c = np.array(colour)
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


def _lab(linear):
    matrix = np.array(TO_XYZ)
    t = matrix @ linear / matrix.sum(1)
    f = np.where(t > 216 / 24389, np.cbrt(t), (24389 / 27 * t + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


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
