"""CO2 at Mauna Loa, extrapolated over 20 years (paper 001, section 5.1 and fig. 2).

The paper's net of three hidden layers of 1024 ReLU units, dropping 0.1 after each. The
paper trains it for 1,000,000 steps; a demo cannot, and in its short training the net
learns the trend, not the season. The season then counts as noise, and tau says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor, nn

from caveat.data import MonthlySeries, load_co2_monthly
from caveat.demo.table import Report
from caveat.demo.timing import timed
from caveat.demo.training import fit, half_squared_error, layer
from caveat.evaluation import PredictiveDisplay
from caveat.evaluation.axes import BLUE
from caveat.noise import weight_decay_groups
from caveat.predictive import GaussianPredictive
from caveat.sampling import MCDropout
from caveat.theory import Loss

N_TRAIN = 272  # months with data, to March 1981, as in the paper
DROP_RATE = 0.1
LENGTHSCALE = 0.02  # with tau near 1, a weight decay near the paper's 1e-6
PRECISIONS = np.logspace(-1, 2, 31)  # tau in standardised units
RED = "#d62728"


@dataclass(frozen=True)
class CO2Effort:
    """How much work to put in."""

    width: int
    n_steps: int
    n_draws: int
    plain_passes: int


FULL = CO2Effort(width=1024, n_steps=800, n_draws=1000, plain_passes=20)
QUICK = CO2Effort(width=128, n_steps=150, n_draws=100, plain_passes=10)


@dataclass(frozen=True, eq=False)
class CO2Task:
    """The series without its straight line, standardised by its training part.

    Attributes
    ----------
    x, y : Tensor, shape (months, 1)
        Standardised time and residual.
    trend : array, shape (months,)
        The line fitted to the training months, in ppm.
    scale : float
        Standard deviation of the training residuals, in ppm.
    """

    series: MonthlySeries
    x: Tensor
    y: Tensor
    trend: NDArray[np.float64]
    scale: float

    @classmethod
    def of(cls, series: MonthlySeries) -> "CO2Task":
        year, train = series.year - series.year[:N_TRAIN].mean(), slice(N_TRAIN)
        line = np.polynomial.Polynomial.fit(year[train], series.value[train], deg=1)
        trend = line(year)
        residual = series.value - trend
        scale = float(residual[train].std())
        columns = (year / year[train].std(), residual / scale)
        x, y = (torch.tensor(c, dtype=torch.float32)[:, None] for c in columns)
        return cls(series, x, y, trend, scale)

    @property
    def residual(self) -> NDArray[np.float64]:
        """What the line leaves over, in ppm."""
        return self.series.value - self.trend


def run(folder: Path, effort: CO2Effort, *, seed: int) -> Report:
    """Train, extrapolate, score and draw."""
    task = CO2Task.of(load_co2_monthly())
    precision = choose_precision(task, effort, seed=seed)
    net = train(task, torch.arange(N_TRAIN), effort, precision=precision, seed=seed)
    mc = MCDropout(net, seed=seed)
    draw = partial(mc.regress, task.x, n_draws=effort.n_draws, precision=precision)
    predictive, timing = timed(draw, net, task.x, plain_passes=effort.plain_passes)
    with torch.no_grad():
        standard = net(task.x)
    path = folder / "co2.png"
    figure(task, standard, predictive).savefig(path, dpi=200)
    test, truth = predictive[N_TRAIN:], task.y[N_TRAIN:]
    # theory 5: log p in ppm = log p standardised - log(scale)
    log_prob = test.log_prob(truth).double().mean().item() - np.log(task.scale)
    return Report(
        task="CO2, 1981-2001",
        unit="ppm RMSE",
        error=_rmse(test.mean, truth) * task.scale,
        standard_error=_rmse(standard[N_TRAIN:], truth) * task.scale,
        log_likelihood=float(log_prob),
        n_draws=predictive.n_draws,
        timing=timing,
        settings=_settings(task, effort, precision),
        figure=path,
    )


def choose_precision(task: CO2Task, effort: CO2Effort, *, seed: int) -> float:
    """tau by the density of a fifth of the training months, held out at random.

    One net serves all candidates: it is trained with the decay of tau = 1, and the
    decay is so weak that the draws hardly depend on it. No test month is seen.
    """
    generator = torch.Generator().manual_seed(seed)
    rows = torch.randperm(N_TRAIN, generator=generator)
    held_out, rest = rows[: N_TRAIN // 5], rows[N_TRAIN // 5 :]
    net = train(task, rest, effort, precision=1.0, seed=seed)
    draws = MCDropout(net, seed=seed).draws(task.x[held_out], n_draws=200)

    def score(precision: float) -> float:
        predictive = GaussianPredictive.from_draws(draws, precision=precision)
        return predictive.log_prob(task.y[held_out]).sum().item()

    return float(max(PRECISIONS, key=score))


def train(
    task: CO2Task, rows: Tensor, effort: CO2Effort, *, precision: float, seed: int
) -> nn.Sequential:
    """The dropout net, trained on some of the months."""
    generator = torch.Generator().manual_seed(seed)
    net = make_net(effort.width, generator)
    groups = weight_decay_groups(
        net,
        precision=precision,
        lengthscale=LENGTHSCALE,
        n_train=len(rows),
        loss=Loss.half_squared_error(),
    )
    data = (task.x[rows], task.y[rows])
    fit(
        net,
        groups,
        half_squared_error,
        data,
        generator=generator,
        n_steps=effort.n_steps,
        what="CO2",
    )
    return net


def make_net(width: int, generator: torch.Generator) -> nn.Sequential:
    """Three hidden layers, dropout after each non-linearity and none on the input."""
    layers: list[nn.Module] = []
    for fan_in in (1, width, width):
        linear = layer(nn.Linear, fan_in, width, generator=generator)
        nn.init.kaiming_uniform_(
            linear.weight, nonlinearity="relu", generator=generator
        )
        layers += [linear, nn.ReLU(), nn.Dropout(DROP_RATE)]
    last = layer(nn.Linear, width, 1, generator=generator)
    return nn.Sequential(*layers, last).eval()


def figure(task: CO2Task, standard: Tensor, predictive: GaussianPredictive) -> Figure:
    """Standard dropout, a line, beside MC dropout, a line with its uncertainty."""
    drawn = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = drawn.subplots(1, 2, sharex=True, sharey=True)
    year = task.series.year
    for ax in (left, right):
        _observations(ax, task)
    line = {"linewidth": 1.8}
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


def _rmse(predicted: Tensor, observed: Tensor) -> float:
    return (predicted - observed).double().square().mean().sqrt().item()


def _settings(task: CO2Task, effort: CO2Effort, precision: float) -> dict[str, object]:
    decay = LENGTHSCALE**2 / ((1 - DROP_RATE) * N_TRAIN * precision)
    return {
        "hidden layers": 3,
        "width": effort.width,
        "steps (paper: 1000000)": effort.n_steps,
        "drop rate": DROP_RATE,
        "length-scale": LENGTHSCALE,
        "weight decay": decay,
        "tau (1/ppm², by held-out training months)": precision / task.scale**2,
        "noise sd (ppm)": task.scale / precision**0.5,
    }
