"""Figure 1a: paths of the weights, six panels."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from caveat.papers.shrinkage.report import Path, path, positive_from
from caveat.papers.shrinkage.weights import AminoAcids, Weight

_LIMIT = 4.2  # weights beyond are out of the picture
_ALL_POSITIVE = "0.9"
_LINES = ("-", "--", "-.", ":", (0, (6, 1)), (0, (1, 1)), (0, (4, 1, 1, 1, 1, 1)))
_SHADES = ("0", "0.45", "0", "0.45", "0.45", "0", "0")
_MARKS = ("o", "s", "^", "v", "D", "x", "+")


def draw(weights: Sequence[Weight], data: AminoAcids) -> Figure:
    """The figure.

    Parameters
    ----------
    weights : sequence of Weight
        All paths.
    data : AminoAcids
        What they were fitted to.

    Returns
    -------
    Figure
    """
    figure = Figure(figsize=(7.2, 5.4), dpi=150)
    grid = figure.subplots(2, 3, sharey=True)
    dropout = path(weights, "standardised", "dropout")
    _panel(grid[0, 0], dropout, _mu)
    _panel(grid[1, 0], dropout, _effective)
    grid[0, 0].plot([1.0] * len(data.alone), data.alone, "k_", clip_on=False)
    for row, scaling in enumerate(("standardised", "centred")):
        _panel(grid[row, 1], path(weights, scaling, "ridge"), _mu)
        _panel(grid[row, 2], path(weights, scaling, "lasso"), _mu)
        grid[row, 2].set_xscale("log")
        grid[row, 0].set_ylabel("weight per s.d. of column", fontsize=8)
    for axes, title in zip(grid.flat, _TITLES, strict=True):
        axes.set_title(title, fontsize=8.5)
    for axes, label in zip(grid.flat, _LABELS, strict=True):
        axes.set_xlabel(label, fontsize=8)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        [*handles, Patch(color=_ALL_POSITIVE)],
        [*names, "all positive"],
        loc="lower center",
        ncols=len(names) + 1,
        fontsize=7,
        frameon=False,
        handlelength=2.6,
        columnspacing=1.2,
    )
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    return figure


_TITLES = (
    "dropout, μ",
    "ridge, standardised columns",
    "lasso, standardised columns",
    "dropout, (1 - f) μ, which predicts",
    "ridge, columns in own units",
    "lasso, columns in own units",
)
_RIDGE = "λ0 / (λ0 + mean sum of squares)"
_LASSO = "α / α of all zero"
_LABELS = ("drop rate f", _RIDGE, _LASSO, "drop rate f", _RIDGE, _LASSO)


def _mu(weight: Weight) -> float:
    return weight.weight


def _effective(weight: Weight) -> float:
    return weight.effective


def _panel(axes: Axes, points: Path, value: Callable[[Weight], float]) -> None:
    positions = sorted(points)
    axes.axhline(0.0, color="0.7", linewidth=0.8)
    for k, _ in enumerate(points[positions[0]]):
        axes.plot(
            positions,
            [value(points[position][k]) for position in positions],
            color=_SHADES[k],
            linestyle=_LINES[k],
            linewidth=1.1,
            marker=_MARKS[k],
            markersize=3.5,
            markerfacecolor="white",
            markevery=(3 * k + 2, max(len(positions) // 4, 1)),
            label=points[positions[0]][k].feature,
        )
    found = positive_from(points)
    if found is not None:
        axes.axvspan(found.position, 1.0, color=_ALL_POSITIVE, zorder=0)
    axes.set_ylim(-_LIMIT, _LIMIT)
    axes.tick_params(labelsize=7.5)
