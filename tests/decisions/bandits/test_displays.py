"""The figure of regrets."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from caveat.decisions.bandits import RegretCurve, RegretDisplay
from caveat.errors import ParameterError


@pytest.fixture(autouse=True)
def _no_window():
    with mpl.rc_context({"backend": "agg"}):
        yield


def test_lines_and_bands():
    ax = Figure().subplots()
    rng = np.random.default_rng(0)
    many = RegretCurve("many", np.cumsum(rng.random((4, 40)), 1)).thinned(10)
    single = RegretCurve("single", np.cumsum(rng.random((1, 40)), 1))
    display = RegretDisplay.from_curves([many, single], ax=ax, linewidth=3)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert [line.get_label() for line in ax.lines] == ["many", "single"]
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [10, 20, 30, 40])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), many.mean)
    assert ax.lines[0].get_linewidth() == 3
    (band,) = ax.collections  # one seed has no band
    heights = band.get_paths()[0].vertices[:, 1]
    top = (many.mean + 2 * many.standard_error).max()
    assert heights.max() == pytest.approx(top)


def test_bad_input():
    with pytest.raises(ParameterError, match="at least one RegretCurve"):
        RegretDisplay.from_curves([])
