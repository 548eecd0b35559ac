"""Training loss, validation error and log-likelihood over epochs, for both tasks."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from caveat.papers.sequence.curves import Curves, chosen
from caveat.papers.sequence.networks import VARIANTS
from caveat.papers.sequence.runs import Record
from caveat.papers.sequence.texts import TASKS
from caveat.papers.style import house_style, ink, name_axes, panels

_LABELS = {
    "none": "no dropout",
    "ordinary": "ordinary dropout",
    "sequence": "one mask per sequence",
}
_COLUMNS = {
    "train_loss": "training\nloss",
    "error": "validation\nerror",
    "log_likelihood": "validation\nlog-likelihood",
}
_UNITS = {"ratings": "ratings (RMSE)", "sentiment": "SST-2 (share wrong)"}


def draw(records: Sequence[Record]) -> Figure:
    """The figure.

    Parameters
    ----------
    records : sequence of Record
        Of all networks.

    Returns
    -------
    Figure
    """
    with house_style():
        return _drawn(records)


def _drawn(records: Sequence[Record]) -> Figure:
    figure, grid = panels(len(TASKS), len(_COLUMNS), height=4.1, sharex=True)
    for row, task in zip(grid, TASKS, strict=True):
        curves = [chosen(records, task, variant) for variant in VARIANTS]
        for axes, column in zip(row, _COLUMNS, strict=True):
            for k, own in enumerate(curves):
                _curve(axes, own, column, k)
        row[0].set_ylabel(_UNITS[task])
    for axes, title in zip(grid[0], _COLUMNS.values(), strict=True):
        name_axes(axes, title)
    for axes in grid[-1]:
        name_axes(axes, "", "epoch")
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=len(names))
    return figure


def _curve(axes: Axes, own: Curves, column: str, k: int) -> None:
    """The mean over seeds, and the range of their values."""
    values = own.validation(column)
    axes.fill_between(
        own.epochs, values.min(0), values.max(0), color=ink(k)["color"], alpha=0.15,
        linewidth=0,
    )  # fmt: skip
    every = (k, max(len(own.epochs) // 5, 1))
    label = _LABELS[own.variant]
    axes.plot(own.epochs, values.mean(0), label=label, markevery=every, **ink(k))
