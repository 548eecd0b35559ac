"""What only all draws of a pool together tell: centres, noise, answers.

The draws of a network are centred around their mean, and the noise depends on the mean
of all; the draws are those that :mod:`caveat.exporting.pools` makes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, ndtr
from torch import Tensor

from caveat.estimators.tables.classification import TableClassification
from caveat.estimators.tables.noise import FarNoise, NoiseLaw
from caveat.estimators.tables.regression import LEAST_NOISE, TableRegression
from caveat.exporting.hashing import normal_quantile
from caveat.exporting.summaries import (
    DRAWS,
    ClassSummary,
    DrawSummary,
    RegressionSummary,
    State,
    mixture_interval,
    pooled,
)

_REACH, _CELLS = 7.0, 4096  # of a table of quantiles: standard deviations
_STEP = 2.0 * _REACH / _CELLS


@final
@dataclass(frozen=True)
class PoolSummary(DrawSummary):
    """What the draws of a pool tell when all of them are there.

    Attributes
    ----------
    table : TableRegression or TableClassification
    level : float
        Of intervals.
    is_vector : bool
        There is one output, and no axis for it.
    """

    table: TableRegression | TableClassification
    level: float = 0.95
    is_vector: bool = False

    @property
    def meanings(self) -> Mapping[str, str]:
        if isinstance(self.table, TableClassification):
            return ClassSummary(self.wanted, self.dtype).meanings
        one = torch.ones(())
        return RegressionSummary(self.wanted, self.dtype, one, self.level).meanings

    @property
    def keeps_draws(self) -> bool:
        return True

    def of_output(self, block: Tensor) -> Tensor:
        return block

    def initial(self, shape: Sequence[Any]) -> State:
        return ()

    def sums(self, block: Tensor) -> State:
        return ()

    def answers(self, state: State) -> dict[str, Tensor]:
        return {}

    def of_draws(self, kept: Tensor) -> dict[str, Tensor]:
        """From (turns made, rows, turns, parts, outputs)."""
        if isinstance(self.table, TableClassification):
            logits = pooled(_centred(kept[:, :, :, 0]))
            of_classes = ClassSummary(self.wanted, self.dtype)
            found = of_classes.answers(of_classes.sums(logits))
            return found | {DRAWS: logits}
        return self._regression(self.table, kept)

    def _regression(self, table: TableRegression, kept: Tensor) -> dict[str, Tensor]:
        standard = pooled(kept[:, :, :, 0] + _centred(kept[:, :, :, 1]))
        logs, numbers = kept[0, :, 0, 2], pooled(kept[:, :, :, 3])
        if table.spreads is not None:
            line, count = table.spreads, standard.shape[-1]
            z = (standard.mean(0) - doubles(line.mean[-count:])) / doubles(
                line.scale[-count:]
            )
            logs = logs + z @ doubles(line.weights[-count:])
        beyond = pooled(kept[:, :, :, 4])
        standard = standard + (beyond - beyond.mean(0))
        each = [
            _noise_variance(law, logs[:, d], numbers[:, :, d])
            for d, law in enumerate(table.laws)
        ]
        variance, middle = (torch.stack(parts, -1) for parts in zip(*each, strict=True))
        standard, variance = _smooth(standard, variance, middle)
        scale = doubles(table.scale)
        means = standard * scale + doubles(table.centre)
        noise = variance * scale.square()
        if self.is_vector:
            means, noise = means.squeeze(-1), noise.squeeze(-1)
        mean = means.mean(0)
        epistemic = (means - mean).square().mean(0)
        total = epistemic + noise.mean(0)
        found = {
            "mean": mean,
            "std": total.sqrt(),
            "variance": total,
            "epistemic_variance": epistemic,
            DRAWS: means,
        }
        if {"lower", "upper"} & set(self.wanted):
            ends = mixture_interval(means, noise.reciprocal(), self.level)
            found |= {"lower": ends[0], "upper": ends[1]}
        return {name: value.to(self.dtype) for name, value in found.items()}


def _noise_variance(
    law: NoiseLaw, logs: Tensor, numbers: Tensor
) -> tuple[Tensor, Tensor]:
    """Of each draw and row, in standard units, as ``NoiseLaw`` has it; of the middle.

    The middle is that of the precisions of a row, (rows,).
    """
    scales = (law.std * torch.exp(law.strength * logs)).clamp_min(law.least)
    squares = scales.square()
    if not np.isfinite(law.df):
        return squares.expand_as(numbers), squares
    ranks = numbers.argsort(0).argsort(0).to(torch.float64)
    count = torch.ones_like(numbers[:, :1]).sum(0)
    levels, half = (ranks + 0.5) / count, ((count / 2.0).floor() + 0.5) / count
    factors = gamma_factors(law.df, normal_quantile(levels))
    if isinstance(law, FarNoise):
        far = torch.full_like(factors, law.width**-2.0)
        factors = torch.where(levels < law.share, far, factors)
    middle = gamma_factors(law.df, normal_quantile(half))
    return squares / factors, squares / middle


def _smooth(means: Tensor, variance: Tensor, middle: Tensor) -> tuple[Tensor, Tensor]:
    """That of ``TableRegression``, of draws (draws, rows, outputs)."""
    mean = means.mean(0)
    spread = (means - mean).square().mean(0)
    least = LEAST_NOISE * (spread + middle)
    narrow, one = middle < least, torch.ones_like(spread)
    nearer = (1.0 - LEAST_NOISE) * (spread + middle) / torch.where(narrow, spread, one)
    means = mean + (means - mean) * torch.where(narrow, nearer, one).sqrt()
    return means, variance * torch.where(narrow, least / middle, one)


def gamma_factors(df: float, z: Tensor) -> Tensor:
    """Quantiles of a gamma law of mean 1 at those of a normal one.

    Parameters
    ----------
    df : float
        Degrees of freedom.
    z : Tensor
        Normal quantiles.

    Returns
    -------
    Tensor, of the same shape
    """
    at = (z.clamp(-_REACH, _REACH) + _REACH) / _STEP
    cell = at.floor().clamp(1.0, _CELLS - 2.0)
    t = (at - cell).unsqueeze(-1)
    # Through the four points around it (Lagrange).
    parts = [
        -t * (t - 1.0) * (t - 2.0) / 6.0,
        (t * t - 1.0) * (t - 2.0) / 2.0,
        -t * (t + 1.0) * (t - 2.0) / 2.0,
        t * (t * t - 1.0) / 6.0,
    ]
    logs = doubles(_gamma_logs(df))
    table = torch.stack([logs[k : _CELLS - 2 + k] for k in range(4)], -1)
    near = table[cell.to(torch.int64) - 1]
    return torch.exp((near * torch.cat(parts, -1)).sum(-1))


def _gamma_logs(df: float) -> NDArray[np.float64]:
    """Logs of quantiles of a gamma law, at those of a normal one in equal steps."""
    z, shape = np.linspace(-_REACH, _REACH, _CELLS + 1), 0.5 * df
    below = gammaincinv(shape, ndtr(np.minimum(z, 0.0)))
    above = gammainccinv(shape, ndtr(-np.maximum(z, 0.0)))
    return np.asarray(np.log(np.where(z < 0.0, below, above) / shape))


def _centred(kept: Tensor) -> Tensor:
    """Draws (made, rows, networks, ...): all networks get the mean of their means."""
    own = kept.mean(0)
    return kept - own + own.mean(1, keepdim=True)


def doubles(values: Any) -> Tensor:
    """Numbers of numpy as a tensor of its own, in double precision."""
    return torch.from_numpy(np.array(values, dtype=np.float64))
