"""Figure 1b: error against regularisation, a panel per condition and shape."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.misspecification.records import Record
from caveat.papers.misspecification.report import Panel, by_features
from caveat.papers.misspecification.simulation import CONDITIONS, N_FEATURES, N_ROWS
from caveat.papers.style import ink, panels

_TOP = 3.2  # errors above are out of the picture
_BOTTOM = 1.5
_RATES = (0.001, 0.01, 0.1, 0.5, 0.8)
_INK = {"ridge": 1, "dropout": 0}


def draw(records: Sequence[Record]) -> Figure:
    """Error against regularisation, with its standard error."""
    shape = len(CONDITIONS), len(N_FEATURES)
    figure, grid = panels(*shape, height=5.4, sharex=True, sharey=True)
    for row, condition in zip(grid, CONDITIONS, strict=True):
        for axes, panel in zip(row, by_features(records, condition), strict=True):
            _panel(axes, panel)
        row[0].set_ylabel(f"{condition}\nsquared test error")
    for axes, n_features in zip(grid[0], N_FEATURES, strict=True):
        _rates_above(axes)
        axes.set_title(f"p = {n_features} (n = {N_ROWS})")
    grid[-1, 1].set_xlabel("λ0 of ridge, n f/(1 - f) of dropout")
    grid[0, 0].legend(loc="upper left")
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    axes.axvline(1.0, color="0.6", linestyle=":", linewidth=1)
    for method, k in _INK.items():
        curve = panel.curve(method)
        axes.errorbar(
            [record.strength for record in curve],
            [record.error for record in curve],
            yerr=[record.error_se for record in curve],
            label=method,
            capsize=1.5,
            **ink(k),
        )
    axes.set_xscale("log")
    axes.set_ylim(_BOTTOM, _TOP)


def _rates_above(axes: Axes) -> None:
    above = axes.twiny()
    above.set_xscale("log")
    above.set_xlim(axes.get_xlim())
    places = [N_ROWS * rate / (1.0 - rate) for rate in _RATES]
    above.set_xticks(places, [f"{rate:g}" for rate in _RATES])
    above.minorticks_off()
    above.grid(visible=False)
    above.spines["top"].set_visible(True)
    above.set_xlabel("drop rate f")
