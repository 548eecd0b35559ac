"""What displays share: where they draw, and in which colours."""

import matplotlib.pyplot as plt
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from caveat.evaluation import (
    CoverageDisplay,
    PredictiveDisplay,
    ReliabilityDisplay,
    RetentionDisplay,
    RiskCoverageDisplay,
)
from caveat.evaluation.axes import BLUE, COLOURS, LineDisplay, diagonal, shade


@pytest.fixture
def displays(classifier, labels, regression, outcomes) -> list[LineDisplay]:
    kinds = (ReliabilityDisplay, RiskCoverageDisplay, RetentionDisplay)
    found = [kind.from_predictive(classifier, labels) for kind in kinds]
    found.append(CoverageDisplay.from_predictive(regression, outcomes))
    found.append(PredictiveDisplay.from_predictive(regression, range(300)))
    return found


def test_all_lines_have_one_blue_and_a_name(displays):
    assert BLUE == COLOURS[0] and len(set(COLOURS)) == len(COLOURS)
    for display in displays:
        names = display.ax_.get_legend_handles_labels()[1]
        assert names and not any(name.startswith("_") for name in names)
        shown = {to_hex(line.get_color()).upper() for line in display.ax_.lines}
        assert BLUE in shown, type(display).__name__


def test_they_can_be_drawn_again_elsewhere(displays):
    for display in displays:
        ax = Figure().subplots()
        assert display.plot(ax, color="red", label="mine") is display
        assert display.ax_ is ax and display.figure_ is ax.figure
        assert "mine" in ax.get_legend_handles_labels()[1]


def test_a_new_figure_is_made_only_if_none_is_given(displays):
    before = len(plt.get_fignums())
    displays[0].plot(Figure().subplots())
    assert len(plt.get_fignums()) == before
    displays[0].plot()
    assert len(plt.get_fignums()) == before + 1


def test_helpers():
    assert shade({"color": "red", "lw": 3}) == {
        "color": "red",
        "alpha": 0.2,
        "linewidth": 0,
    }
    ax = Figure().subplots()
    diagonal(ax, 0.4)
    assert ax.lines[0].get_ydata().tolist() == [0, 0.4]
