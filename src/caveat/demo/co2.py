"""CO2 at Mauna Loa, extrapolated over 20 years (paper 001, section 5.1 and fig. 2).

Three hidden layers of ReLU units, dropping 0.1 after each, as in the paper, but half as
wide. The paper trains for 1,000,000 steps; a demo cannot. So its first weights are not
those of the paper but kinks and tents spread over the months
(``papers.series.starts``), from which the season is learnt in 2,000.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils import skip_init

from caveat.data.embedded import MonthlySeries, load_co2_monthly
from caveat.demo.letters import Band, band_lines
from caveat.demo.pictures import save
from caveat.demo.table import Report
from caveat.demo.timing import timed
from caveat.demo.training import fit, half_squared_error
from caveat.noise import weight_decay_groups
from caveat.papers.series.starts import tents
from caveat.predictive import GaussianPredictive
from caveat.sampling import MCDropout
from caveat.theory import Loss

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N_TRAIN = 272  # months with data, to March 1981, as in the paper
DROP_RATE = 0.1
LENGTHSCALE = 0.02  # with tau near 1, a weight decay near the paper's 1e-6
PRECISIONS = np.logspace(-1, 2, 31)  # tau in standardised units


@dataclass(frozen=True)
class CO2Effort:
    """How much work to put in."""

    width: int
    n_steps: int
    n_draws: int
    plain_passes: int


FULL = CO2Effort(width=512, n_steps=2000, n_draws=1000, plain_passes=20)
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

    def draw_figure() -> "Figure":
        from caveat.demo.co2_figure import figure  # here: it brings matplotlib

        return figure(task, standard, predictive)

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
        picture=picture(task, predictive),
        figure=save(folder / "co2.png", draw_figure),
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
    net = make_net(task.x[rows], effort.width, generator)
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


def make_net(x: Tensor, width: int, generator: torch.Generator) -> nn.Sequential:
    """Three hidden layers, dropout after each non-linearity and none on the input."""
    layers: list[nn.Module] = []
    for weight, bias in tents(x, width, 3, generator):
        linear = skip_init(nn.Linear, *weight.shape)
        with torch.no_grad():
            linear.weight.copy_(weight.T)
            linear.bias.copy_(bias)
        layers += [linear, nn.ReLU(), nn.Dropout(DROP_RATE)]
    return nn.Sequential(*layers[:-2]).eval()


def picture(task: CO2Task, predictive: GaussianPredictive) -> str:
    """The band of two standard deviations in letters, at every fourth January."""
    mean, std = (
        task.scale * v[:, 0].numpy() for v in (predictive.mean, predictive.std)
    )
    months = task.series.month
    at = [k for k, month in enumerate(months) if _is_fourth_january(month)]
    bands = [
        Band(
            str(months[k])[:4],
            float(mean[k] - 2 * std[k]),
            float(mean[k]),
            float(mean[k] + 2 * std[k]),
            float(task.residual[k]),
        )
        for k in at
    ]
    lines = ["CO2 minus its straight line, ppm: ( mean o, two sd, ) observed x"]
    lines += band_lines(bands, note=lambda b: f"± {(b.upper - b.lower) / 2:.1f}")
    return "\n".join([*lines, "(learned from 1958 to March 1981)"])


def _is_fourth_january(month: np.datetime64) -> bool:
    since_1970 = int(month.astype(np.int64))
    return since_1970 % 48 == 0


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
