"""The drawing of the CO2 task: standard dropout above, its predictive below."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from caveat.demo.co2 import N_TRAIN, CO2Task
from caveat.papers.style import COLOURS, house_style, panels, shades
from caveat.predictive import GaussianPredictive

BLUE, INK, PALE = COLOURS["blue"], "0.1", "0.6"
FROM, TO = 1968.0, 2002.0  # the season can be seen in a narrow window
N_FUNCTIONS = 12


@house_style()
def figure(task: CO2Task, standard: Tensor, predictive: GaussianPredictive) -> Figure:
    """Standard dropout, a line, above the same net as a distribution over functions.

    One above the other, with words where things are, to be read on a telephone.
    """
    drawn, grid = panels(2, 1, height=5.0, sharex=True, sharey=True)
    above, below = grid[:, 0]
    year = task.series.year
    _predictive(below, task, predictive)
    for axes in (above, below):
        _observations(axes, task)
    above.plot(year, task.scale * standard[:, 0].numpy(), color=BLUE, linewidth=2.0)
    _title(above, "Dropout as usual: one line")
    _title(below, "The same network with Caveat")
    _words(above, below, task)
    above.set_xlim(FROM, TO)
    drawn.supylabel("CO₂ minus its straight line, ppm", fontsize=11)
    return drawn


def _predictive(axes: Axes, task: CO2Task, predictive: GaussianPredictive) -> None:
    """Two standard deviations in shades, the mean, and some draws as functions."""
    year = task.series.year
    mean, sd = (task.scale * v[:, 0].numpy() for v in (predictive.mean, predictive.std))
    shades(axes, year, mean, sd)
    functions = task.scale * predictive.draws[:N_FUNCTIONS, :, 0].T.numpy()
    axes.plot(year, functions, color=BLUE, linewidth=0.5, alpha=0.55)
    axes.plot(year, mean, color=BLUE, linewidth=2.0)


def _observations(axes: Axes, task: CO2Task) -> None:
    year, residual = task.series.year, task.residual
    dots: dict[str, Any] = {"linestyle": "none", "marker": ".", "markersize": 2.6}
    axes.plot(year[:N_TRAIN], residual[:N_TRAIN], color=INK, **dots)
    axes.plot(year[N_TRAIN:], residual[N_TRAIN:], color=PALE, **dots)
    axes.axvline(_end(task), color="0.3", linestyle=(0, (3, 2)), linewidth=1.0)


def _end(task: CO2Task) -> float:
    return float(np.mean(task.series.year[N_TRAIN - 1 : N_TRAIN + 1]))


def _title(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=13, fontweight="bold")
    axes.tick_params(labelsize=11)


def _words(above: Axes, below: Axes, task: CO2Task) -> None:
    """What is what, said beside it."""
    end, top = _end(task), 15.5
    said: dict[str, Any] = {"fontsize": 11, "va": "top"}
    above.text(end - 0.4, top, "learnt from", ha="right", color=INK, **said)
    above.text(end + 0.4, top, "what came later, unseen", color="0.4", **said)
    below.text(
        FROM + 0.4,
        top,
        f"mean ± 2 sd,\n{N_FUNCTIONS} draws",
        ha="left",
        color=BLUE,
        **said,
    )
