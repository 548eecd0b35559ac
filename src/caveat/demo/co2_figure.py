"""The drawing of the CO2 task: standard dropout beside MC dropout."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from caveat.demo.co2 import N_TRAIN, CO2Task
from caveat.evaluation.axes import BLUE
from caveat.evaluation.displays import PredictiveDisplay
from caveat.predictive import GaussianPredictive

RED = "#d62728"


def figure(task: CO2Task, standard: Tensor, predictive: GaussianPredictive) -> Figure:
    """Standard dropout, a line, beside MC dropout, a line with its uncertainty."""
    drawn = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = drawn.subplots(1, 2, sharex=True, sharey=True)
    year = task.series.year
    for ax in (left, right):
        _observations(ax, task)
    line: dict[str, Any] = {"linewidth": 1.8}
    left.plot(year, task.scale * standard[:, 0].numpy(), color=BLUE, **line)
    left.set_title("(a) standard dropout: one deterministic pass", loc="left")
    PredictiveDisplay.from_predictive(
        predictive, year, scale=task.scale, ax=right, **line
    )
    _without_noise(right, task, predictive)
    noise = task.scale * predictive.noise_variance[0].sqrt().item()
    right.set_title(
        f"(b) MC dropout: {predictive.n_draws} draws, noise sd {noise:.1f} ppm",
        loc="left",
    )
    left.set_ylabel("CO₂ minus straight line (ppm)")
    handles, labels = right.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return drawn


def _without_noise(ax: Axes, task: CO2Task, predictive: GaussianPredictive) -> None:
    """Two standard deviations of the draws alone: what grows away from the data."""
    mean, sd = predictive.mean[:, 0], predictive.epistemic_variance[:, 0].sqrt()
    lines = torch.stack([mean - 2 * sd, mean + 2 * sd], 1).numpy() * task.scale
    label = ["±2 sd of the draws, without noise", "_"]
    ax.plot(task.series.year, lines, ":", color=BLUE, linewidth=1.2, label=label)


def _observations(ax: Axes, task: CO2Task) -> None:
    year, residual = task.series.year, task.residual
    split = float(year[N_TRAIN - 1 : N_TRAIN + 1].mean())
    thin: dict[str, Any] = {"color": RED, "linewidth": 0.9}
    ax.plot(year[:N_TRAIN], residual[:N_TRAIN], label="observed, training", **thin)
    later: Sequence[NDArray[np.float64]] = (year[N_TRAIN:], residual[N_TRAIN:])
    ax.plot(*later, alpha=0.45, label="observed later, not used", **thin)
    ax.axvline(split, color="0.3", linestyle="--", label="end of training data")
    ax.set_xlabel("year")
    ax.margins(x=0.01)
    ax.spines[["top", "right"]].set_visible(False)
