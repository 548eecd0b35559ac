"""Displays of calibration draw the curves they hold, where they are told to."""

import numpy as np
import pytest
from matplotlib.figure import Figure

from caveat.evaluation import (
    CoverageCurve,
    CoverageDisplay,
    ReliabilityCurve,
    ReliabilityDisplay,
)


def test_reliability_points(classifier, labels):
    display = ReliabilityDisplay.from_predictive(classifier, labels, n_bins=6)
    curve = ReliabilityCurve.from_predictive(classifier, labels, n_bins=6)
    points = display.ax_.containers[0].lines[0]
    np.testing.assert_allclose(points.get_xdata(), curve.confidence)
    np.testing.assert_allclose(points.get_ydata(), curve.accuracy)
    bars = display.ax_.containers[0].lines[2][0].get_segments()
    heights = [np.ptp(bar[:, 1]) for bar in bars]
    np.testing.assert_allclose(heights, 4 * curve.accuracy_error)
    assert display.ax_.get_legend_handles_labels()[1] == [f"ECE {curve.ece}"]


def test_coverage_line(regression, outcomes):
    display = CoverageDisplay.from_predictive(
        regression, outcomes, levels=[0.2, 0.8], label="mine", color="red"
    )
    curve = CoverageCurve.from_predictive(regression, outcomes, levels=[0.2, 0.8])
    line = display.ax_.lines[1]
    np.testing.assert_allclose(line.get_ydata(), curve.observed)
    assert (line.get_label(), line.get_color()) == ("mine", "red")
    edge = np.asarray(display.ax_.collections[0].get_paths()[0].vertices)
    assert edge[:, 1].max() == pytest.approx(0.8 + 2 * np.sqrt(0.16 / 300))


def test_they_draw_where_they_are_told(classifier, labels, regression, outcomes):
    figure = Figure()
    left, right = figure.subplots(1, 2)
    first = ReliabilityDisplay.from_predictive(classifier, labels, ax=left)
    second = CoverageDisplay.from_predictive(regression, outcomes, ax=right)
    assert first.ax_ is left and second.ax_ is right
    assert first.figure_ is second.figure_ is figure
    assert second.plot(left) is second and second.ax_ is left
