"""Pools of the estimators' presets as modules: columns, lines, networks, noise.

A pass of such a module is one turn: each network once, and as many numbers for the
lines. What only all draws together tell (the mean of a network, around which its draws
are centred; the noise, which depends on the mean) is done by :class:`PoolSummary`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaincinv, ndtr
from torch import Tensor, nn

from caveat.estimators.tables.classification import (
    SURE,
    VIEW_OF,
    TableClassification,
)
from caveat.estimators.tables.columns import BEND, Columns
from caveat.estimators.tables.logistic import Logistic
from caveat.estimators.tables.nets import Nets
from caveat.estimators.tables.noise import FarNoise, NoiseLaw
from caveat.estimators.tables.regression import (
    BACK,
    FARTHEST,
    LEAST_NOISE,
    LINES,
    Bent,
    TableRegression,
)
from caveat.estimators.tables.ridge import Ridge
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

LINES_PATH, NETS_PATH, NOISE_PATH, BEYOND_PATH = "lines", "nets", "noise", "beyond"
_TINY = 1e-8  # as in ``Ridge.draws``
_REACH, _CELLS = 7.0, 4096  # of a table of quantiles: standard deviations
_STEP = 2.0 * _REACH / _CELLS


class ColumnViews(nn.Module):
    """``Columns`` in torch: rows to each way that a part may want them."""

    low: Tensor
    high: Tensor
    least: Tensor
    most: Tensor
    centre: Tensor
    scale: Tensor

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        for name in ("low", "high", "least", "most", "centre", "scale"):
            self.register_buffer(name, _buffer(getattr(columns, name)))
        self._codes = _buffers(self, "codes", columns.levels)
        self._knots = _buffers(self, "knots", columns.knots)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        """All views."""
        plain = (torch.clamp(x, self.low, self.high) - self.centre) / self.scale
        bounded = plain / torch.sqrt(1.0 + (plain / BEND).square())
        codes = [
            (x[:, i : i + 1] == getattr(self, name)).to(torch.float64)
            for i, name in self._codes.items()
        ]
        encoded = torch.cat([bounded, *codes], 1)
        steps = []
        for i, name in self._knots.items():
            knots = getattr(self, name)
            own = (x[:, i : i + 1] - knots[:-1]) / (knots[1:] - knots[:-1])
            steps.append(torch.clamp(own, 0.0, 1.0))
        return {
            "plain": plain,
            "encoded": encoded,
            "pieces": torch.cat([encoded, *steps], 1),
        }


class StraightLine(nn.Module):
    """``Ridge`` in torch: the mean at some rows, and draws around it."""

    mean: Tensor
    scale: Tensor
    weights: Tensor
    intercept: Tensor

    def __init__(self, line: Ridge | Logistic) -> None:
        super().__init__()
        for name in ("mean", "scale", "weights", "intercept"):
            self.register_buffer(name, _buffer(getattr(line, name)))

    def forward(self, x: Tensor) -> Tensor:
        """Means, (rows, outputs)."""
        return self.means(x)

    def means(self, x: Tensor) -> Tensor:
        """The same, also of what draws."""
        return self.standard(x) @ self.weights + self.intercept

    def standard(self, x: Tensor) -> Tensor:
        """Rows in its units."""
        return (x - self.mean) / self.scale


class DrawnLine(StraightLine):
    """The same with the posterior of its weights."""

    basis: Tensor
    spread: Tensor
    free: Tensor
    level: Tensor

    def __init__(self, line: Ridge, turns: int) -> None:
        super().__init__(line)
        for name in ("basis", "spread", "free", "level"):
            self.register_buffer(name, _buffer(getattr(line, name)))
        self._turns = turns

    def forward(self, x: Tensor) -> Tensor:
        """Draws, (rows, turns, outputs)."""
        z = self.standard(x)
        along = z @ self.basis
        rest = z - along @ self.basis.T
        is_inside = (rest.abs() <= _TINY).all(1, keepdim=True)
        rest = torch.where(is_inside, torch.zeros_like(rest), rest)
        rank, outputs = self.spread.shape
        found = _times(along, self._normals(x, rank, outputs) * self.spread)
        found = found + self.means(x).unsqueeze(1)
        found = found + self.level * self._normals(x, 1, outputs).squeeze(2)
        outside = self._normals(x, z.shape[1], outputs) * self.free
        return found + _times(rest, outside)

    def _normals(self, x: Tensor, *shape: int) -> Tensor:
        return _normals(x, self._turns, *shape)


class MeanLine(nn.Module):
    """The mean of some lines."""

    def __init__(self, lines: Sequence[Ridge]) -> None:
        super().__init__()
        self.lines = nn.ModuleList(StraightLine(line) for line in lines)

    def forward(self, x: Tensor) -> Tensor:
        """Means, (rows, outputs)."""
        return torch.stack([line(x) for line in self.lines]).mean(0)


class Level(nn.Module):
    """The constant of a pool, with its error."""

    level: Tensor

    def __init__(self, level: NDArray[Any], turns: int) -> None:
        super().__init__()
        self.register_buffer("level", _buffer(level))
        self._turns = turns

    def forward(self, x: Tensor) -> Tensor:
        """Draws, (rows, turns, outputs)."""
        mean, error = self.level
        normals = _normals(x, self._turns, 1, len(mean)).squeeze(2)
        return mean + error * normals

    def means(self, x: Tensor) -> Tensor:
        """The constant, which all rows share."""
        return self.level[0]


class Networks(nn.Module):
    """``Nets`` in torch."""

    mean: Tensor
    scale: Tensor
    units: Tensor

    def __init__(self, nets: Nets) -> None:
        super().__init__()
        self.members = nn.ModuleList(net.double() for net in nets.modules())
        for name in ("mean", "scale", "units"):
            self.register_buffer(name, _buffer(getattr(nets, name)))

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of each under its masks, (rows, networks, outputs)."""
        z = (x - self.mean) / self.scale
        return torch.stack([net(z) for net in self.members], 1) * self.units

    def means(self, x: Tensor) -> Tensor:
        """The same without noise."""
        z = (x - self.mean) / self.scale
        return torch.stack([_without_noise(m, z) for m in self.members], 1) * self.units


class RegressionPool(nn.Module):
    """One turn of a ``TableRegression`` in standard units.

    Returns (rows, turns, 5, outputs): what of a draw is as it is, what is centred, the
    log scale of the noise as far as the columns tell it, numbers whose ranks say which
    part of the noise's tails a draw has, and what it adds beyond what was seen.
    """

    def __init__(self, table: TableRegression) -> None:
        super().__init__()
        self.turns = table.turns
        self.columns = ColumnViews(table.columns)
        self._views, self._shares = [], table.shares
        self.lines, self.nets, self.straight = (nn.ModuleDict() for _ in range(3))
        for place, (name, part) in enumerate(
            zip(table.names, table.parts, strict=True)
        ):
            key = str(place)
            if part is None:
                self.lines[key] = Level(table.level, self.turns)
                self._views.append(("plain", "plain"))
            elif isinstance(part, Bent):
                self.nets[key] = Networks(part.nets)
                self.straight[key] = MeanLine(part.lines)
                self._views.append((part.view, part.nets.view))
            else:
                self.lines[key] = DrawnLine(part, self.turns)
                self._views.append((LINES[name].view,) * 2)
        self.spreads = None if table.spreads is None else StraightLine(table.spreads)
        self.noise = NoiseNumbers(table.laws, self.turns)
        self.beyond = TurnNumbers(self.turns)

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        x = x.to(torch.float64)
        views = self.columns(x)
        beyond = self._reach(x).unsqueeze(1) * self.beyond(x).unsqueeze(2)
        zeros = x.new_zeros(x.shape[0], self.turns, self._shares.shape[1])
        plain = centred = zeros
        for place, (view, net_view) in enumerate(self._views):
            key, share = str(place), _buffer(self._shares[place])
            if key in self.lines:
                plain = plain + share * self.lines[key](views[view])
                continue
            straight = self.straight[key](views[view]).unsqueeze(1)
            bent = self.nets[key](views[net_view])
            centred = centred + share * (bent + straight)
        logs = zeros
        if self.spreads is not None:
            # Of the mean of the draws, which only the end knows, this says nothing.
            width = views["pieces"].shape[1]
            z = (views["pieces"] - self.spreads.mean[:width]) / self.spreads.scale[
                :width
            ]
            own = z @ self.spreads.weights[:width] + self.spreads.intercept
            logs = logs + own.unsqueeze(1)
        return torch.stack([plain, centred, logs, self.noise(x) + zeros, beyond], 2)

    def _reach(self, x: Tensor) -> Tensor:
        """What a draw of 1 adds beyond what was seen, (rows, outputs)."""
        seen = torch.clamp(x, self.columns.least, self.columns.most)
        widths = self.columns.most - self.columns.least
        has_width = widths > 0
        excess = (x - seen) / torch.where(has_width, widths, torch.ones_like(widths))
        excess = torch.where(has_width, excess, torch.zeros_like(excess))
        far = excess.abs().amax(1, keepdim=True)
        share = excess / torch.where(far > 0, far, torch.ones_like(far))
        here, end, before = map(self._mean, (x, seen, seen - BACK * share * widths))
        steps = far.clamp_max(FARTHEST) / BACK
        return (here - end - (end - before) * steps).abs()

    def _mean(self, x: Tensor) -> Tensor:
        """What is drawn around, (rows, outputs): networks without their noise."""
        views = self.columns(x)
        found = x.new_zeros(x.shape[0], self._shares.shape[1])
        for place, (view, net_view) in enumerate(self._views):
            key, share = str(place), _buffer(self._shares[place])
            part: Any = self.lines[key] if key in self.lines else self.nets[key]
            if key in self.lines:
                found = found + share * part.means(views[view])
            else:
                bent = part.means(views[net_view]).mean(1)
                found = found + share * (bent + self.straight[key](views[view]))
        return found


class TurnNumbers(nn.Module):
    """A standard normal number for each turn."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self._turns = turns

    def forward(self, x: Tensor) -> Tensor:
        """(rows, turns)."""
        return _normals(x, self._turns)


class NoiseNumbers(nn.Module):
    """Numbers for the tails of the noise of each output; 0 without tails."""

    def __init__(self, laws: Sequence[NoiseLaw], turns: int) -> None:
        super().__init__()
        self._has_tails = [bool(np.isfinite(law.df)) for law in laws]
        self._turns = turns

    def forward(self, x: Tensor) -> Tensor:
        """(rows, turns, outputs)."""
        zeros = x.new_zeros(x.shape[0], self._turns)
        found = [_normals(x, self._turns) if t else zeros for t in self._has_tails]
        return torch.stack(found, 2)


class ClassPool(nn.Module):
    """One turn of a ``TableClassification``: (rows, turns, 1, classes), all centred."""

    prior: Tensor

    def __init__(self, table: TableClassification) -> None:
        super().__init__()
        self.turns = table.turns
        self.columns = ColumnViews(table.columns)
        self._views, self._weights = [], table.weights
        self.lines, self.nets = nn.ModuleDict(), nn.ModuleDict()
        self.register_buffer("prior", _buffer(table.prior))
        self.noise = NoiseNumbers((NoiseLaw(1.0, 0.0, 2.0),), self.turns)
        for place, (name, part) in enumerate(
            zip(table.names, table.parts, strict=True)
        ):
            if isinstance(part, Nets):
                self.nets[str(place)] = Networks(part)
                self._views.append(part.view)
            else:
                if part is not None:
                    self.lines[str(place)] = StraightLine(part)
                self._views.append(VIEW_OF.get(name, "plain"))

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        x = x.to(torch.float64)
        views = self.columns(x)
        # A pool without networks draws nothing; a graph of draws needs a site.
        found = 0.0 * self.noise(x)
        for place, (view, weight) in enumerate(
            zip(self._views, self._weights, strict=True)
        ):
            key = str(place)
            if key in self.nets:
                own = _tame(self.nets[key](views[view]))
            elif key in self.lines:
                own = _tame(self.lines[key](views[view])).unsqueeze(1)
            else:
                own = self.prior
            found = found + _buffer(weight) * own
        return found.unsqueeze(2)


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
            z = (standard.mean(0) - _buffer(line.mean[-count:])) / _buffer(
                line.scale[-count:]
            )
            logs = logs + z @ _buffer(line.weights[-count:])
        beyond = pooled(kept[:, :, :, 4])
        standard = standard + (beyond - beyond.mean(0))
        each = [
            _noise_variance(law, logs[:, d], numbers[:, :, d])
            for d, law in enumerate(table.laws)
        ]
        variance, middle = (torch.stack(parts, -1) for parts in zip(*each, strict=True))
        standard, variance = _smooth(standard, variance, middle)
        scale = _buffer(table.scale)
        means = standard * scale + _buffer(table.centre)
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
    logs = _buffer(gamma_logs(df))
    table = torch.stack([logs[k : _CELLS - 2 + k] for k in range(4)], -1)
    near = table[cell.to(torch.int64) - 1]
    return torch.exp((near * torch.cat(parts, -1)).sum(-1))


def gamma_logs(df: float) -> NDArray[np.float64]:
    """Logs of quantiles of a gamma law, at those of a normal one in equal steps.

    Parameters
    ----------
    df : float
        Degrees of freedom; the law has mean 1 and the shape df / 2.

    Returns
    -------
    array, shape (cells + 1,)
    """
    z, shape = np.linspace(-_REACH, _REACH, _CELLS + 1), 0.5 * df
    below = gammaincinv(shape, ndtr(np.minimum(z, 0.0)))
    above = gammainccinv(shape, ndtr(-np.maximum(z, 0.0)))
    return np.asarray(np.log(np.where(z < 0.0, below, above) / shape))


def _centred(kept: Tensor) -> Tensor:
    """Draws (made, rows, networks, ...): all networks get the mean of their means."""
    own = kept.mean(0)
    return kept - own + own.mean(1, keepdim=True)


def _tame(logits: Tensor) -> Tensor:
    """``tame`` of the classification."""
    return (logits - logits.mean(-1, keepdim=True)).clamp(-SURE, SURE)


def _without_noise(net: nn.Module, z: Tensor) -> Tensor:
    """What a network tells with its masks left out."""
    for layer in net.children():
        if not isinstance(layer, nn.Dropout):
            z = layer(z)
    return z


def _normals(x: Tensor, turns: int, *shape: int) -> Tensor:
    """Standard normal numbers that all rows share; a site."""
    return torch.randn(x.shape[0], turns, *shape, dtype=torch.float64)


def _times(rows: Tensor, noise: Tensor) -> Tensor:
    """(rows, k) times (rows, turns, k, outputs): (rows, turns, outputs)."""
    return (rows.unsqueeze(1).unsqueeze(-1) * noise).sum(2)


def _buffer(values: Any) -> Tensor:
    return torch.from_numpy(np.array(values, dtype=np.float64))


def _buffers(
    module: nn.Module, name: str, values: Sequence[NDArray[Any]]
) -> dict[int, str]:
    """Buffers for those that are not empty, by their places."""
    found = {i: f"{name}_{i}" for i, own in enumerate(values) if len(own)}
    for i, own in found.items():
        module.register_buffer(own, _buffer(values[i]))
    return found
