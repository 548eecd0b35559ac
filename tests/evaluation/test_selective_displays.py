"""Displays of risk and retention draw the curves they hold."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from caveat.evaluation import RetentionDisplay, RiskCoverage, RiskCoverageDisplay


def test_risk_and_its_error(classifier, labels):
    display = RiskCoverageDisplay.from_predictive(classifier, labels, score="entropy")
    curve = RiskCoverage.from_predictive(classifier, labels, score="entropy")
    line = display.ax_.lines[0]
    np.testing.assert_allclose(line.get_xdata(), curve.coverage)
    np.testing.assert_allclose(line.get_ydata(), curve.risk)
    edge = np.asarray(display.ax_.collections[0].get_paths()[0].vertices)
    top = (curve.risk + 2 * curve.risk_error)[1:].max()
    assert edge[:, 1].max() == pytest.approx(top)
    assert line.get_label() == f"AURC {curve.aurc}"


def test_retention_starts_at_zero_and_ends_at_the_risk(classifier, labels):
    display = RetentionDisplay.from_predictive(classifier, labels)
    chance, line = display.ax_.lines
    assert line.get_ydata()[0] == 0.0
    assert line.get_ydata()[-1] == chance.get_ydata()[-1] == display.curve.risk[-1]


def test_they_draw_where_they_are_told(classifier, labels):
    figure, before = Figure(), dict(mpl.rcParams)
    ax = figure.subplots()
    display = RiskCoverageDisplay.from_predictive(classifier, labels, ax=ax, lw=3)
    assert display.ax_ is ax and display.figure_ is figure
    assert ax.lines[0].get_linewidth() == 3
    assert plt.get_fignums() == [] and dict(mpl.rcParams) == before
