"""Figure 1b: error against regularisation, a panel per condition and shape."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.misspecification.records import Record
from caveat.papers.misspecification.report import Panel, panels
from caveat.papers.misspecification.simulation import CONDITIONS, N_FEATURES, N_ROWS

_TOP = 3.2  # errors above are out of the picture
_BOTTOM = 1.5
_RATES = (0.001, 0.01, 0.1, 0.5, 0.8)
_STYLES: dict[str, dict[str, Any]] = {
    "ridge": {"linestyle": "--", "marker": "o", "markerfacecolor": "white"},
    "dropout": {"linestyle": "-", "marker": "s", "markerfacecolor": "black"},
}


def draw(records: Sequence[Record]) -> Figure:
    """The figure.

    Parameters
    ----------
    records : sequence of Record
        Of all panels.

    Returns
    -------
    Figure
    """
    figure = Figure(figsize=(7.0, 6.6), dpi=150)
    shape = len(CONDITIONS), len(N_FEATURES)
    grid = figure.subplots(*shape, sharex=True, sharey=True)
    for row, condition in zip(grid, CONDITIONS, strict=True):
        for axes, panel in zip(row, panels(records, condition), strict=True):
            _panel(axes, panel)
        row[0].set_ylabel(f"{condition}\nsquared test error", fontsize=8)
    for axes, n_features in zip(grid[0], N_FEATURES, strict=True):
        _rates_above(axes)
        axes.set_title(f"p = {n_features} (n = {N_ROWS})", fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("λ0 of ridge, n f/(1 - f) of dropout", fontsize=8)
    grid[0, 0].legend(fontsize=7.5, loc="upper left", frameon=False)
    figure.tight_layout()
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    axes.axvline(1.0, color="0.6", linestyle=":", linewidth=1)
    for method, style in _STYLES.items():
        curve = panel.curve(method)
        axes.errorbar(
            [record.strength for record in curve],
            [record.error for record in curve],
            yerr=[record.error_se for record in curve],
            label=method,
            color="black",
            linewidth=1,
            markersize=3.5,
            capsize=1.5,
            **style,
        )
    axes.set_xscale("log")
    axes.set_ylim(_BOTTOM, _TOP)
    axes.grid(color="0.92")
    axes.tick_params(labelsize=7.5)


def _rates_above(axes: Axes) -> None:
    above = axes.twiny()
    above.set_xscale("log")
    above.set_xlim(axes.get_xlim())
    places = [N_ROWS * rate / (1.0 - rate) for rate in _RATES]
    above.set_xticks(places, [f"{rate:g}" for rate in _RATES])
    above.minorticks_off()
    above.tick_params(labelsize=7)
    above.set_xlabel("drop rate f", fontsize=7.5)
