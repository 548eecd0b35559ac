"""Figures 5 and 6: the world, and rewards against batches."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from caveat.papers.rl.records import Reward, smoothed, table
from caveat.papers.style import house_style, line, name_axes, panels

_CURVES = {
    "thompson": "Thompson",
    "epsilon_greedy": "epsilon greedy",
    "thompson_inputs": "Thompson, inputs dropped too",
}
_PAPER = (25, 175)  # batches to reward 1


def draw(
    rewards: Sequence[Reward], world: NDArray[np.uint8], *, burn_in: int
) -> Figure:
    """The figure.

    Parameters
    ----------
    rewards : sequence of Reward
        Of all policies.
    world : array of uint8, shape (height, width, 3)
        A picture of it.
    burn_in : int
        Batches of random moves, which are not plotted.

    Returns
    -------
    Figure
    """
    with house_style():
        figure, grid = panels(2, 1, height=4.6, height_ratios=[1.0, 1.05])
        _world(grid[0, 0], world)
        _rewards(grid[1, 0], rewards, burn_in)
    return figure


def _world(axes: Axes, world: NDArray[np.uint8]) -> None:
    axes.imshow(world)
    axes.set_axis_off()
    name_axes(axes, "the world (fig. 5): walls, food, poison (crossed), nine eyes")


def _rewards(axes: Axes, rewards: Sequence[Reward], burn_in: int) -> None:
    for k, (policy, label) in enumerate(_CURVES.items()):
        curves = smoothed(table(rewards, policy))[:, burn_in:]
        x = np.arange(1, curves.shape[1] + 1)
        mean, sd = curves.mean(0), curves.std(0, ddof=1)
        axes.plot(x, mean, label=label, **line(k))
        axes.fill_between(x, mean - sd, mean + sd, color="0.4", alpha=0.2, linewidth=0)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    for batches in _PAPER:
        axes.axvline(batches, 0.62, 0.9, color="0.3", linewidth=0.9, linestyle=":")
        axes.annotate(f"paper: {batches}", (batches, 1.145), fontsize=7, ha="center")
    axes.set(xscale="log", xlim=(1, None), ylim=(0.6, 1.2))
    axes.legend(loc="lower right")
    name_axes(
        axes,
        "mean of the last 1000 rewards (fig. 6), mean ± sd over agents",
        "batches of 200 ticks after burn-in",
        "reward",
    )
