"""Figure 1a: paths of the weights, six panels."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from caveat.papers.shrinkage.report import Path, path, positive_from
from caveat.papers.shrinkage.weights import SCALINGS, AminoAcids, Weight
from caveat.papers.style import name_axes, panels

_LIMIT = 4.2  # weights beyond are out of the picture
_ALL_POSITIVE = "0.9"
_LINES = ("-", "--", "-.", ":", (0, (6, 1)), (0, (1, 1)), (0, (4, 1, 1, 1, 1, 1)))
_SHADES = ("0", "0.45", "0", "0.45", "0.45", "0", "0")
_MARKS = ("o", "s", "^", "v", "D", "x", "+")


def draw(weights: Sequence[Weight], data: AminoAcids) -> Figure:
    """All paths; where the rest is all positive is grey."""
    figure, grid = panels(2, 3, height=4.6, sharey=True)
    dropout = path(weights, "standardised", "dropout")
    _panel(grid[0, 0], dropout, _mu)
    _panel(grid[1, 0], dropout, _effective)
    grid[0, 0].plot([1.0] * len(data.alone), data.alone, "k_", clip_on=False)
    for row, scaling in enumerate(SCALINGS):
        _panel(grid[row, 1], path(weights, scaling, "ridge"), _mu)
        _panel(grid[row, 2], path(weights, scaling, "lasso"), _mu)
        grid[row, 2].set_xscale("log")
        grid[row, 0].set_ylabel("weight per s.d. of column")
    for axes, title, label in zip(grid.ravel().tolist(), _TITLES, _LABELS, strict=True):
        name_axes(axes, title, label)
    handles, names = grid[0, 0].get_legend_handles_labels()
    grey = Patch(color=_ALL_POSITIVE, label="all positive")
    figure.legend(
        handles=[*handles, grey], loc="outside lower center", ncols=len(names) // 2 + 1
    )
    return figure


_TITLES = (
    "dropout, μ",
    "ridge, standardised",
    "lasso, standardised",
    "dropout, (1 - f) μ",
    "ridge, own units",
    "lasso, own units",
)
_RIDGE = "λ0 / (λ0 + mean Σx²)"
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
            marker=_MARKS[k],
            markerfacecolor="white",
            markevery=(3 * k + 2, max(len(positions) // 4, 1)),
            label=points[positions[0]][k].feature,
        )
    found = positive_from(points)
    if found is not None:
        axes.axvspan(found.position, 1.0, color=_ALL_POSITIVE, zorder=0)
    axes.set_ylim(-_LIMIT, _LIMIT)
