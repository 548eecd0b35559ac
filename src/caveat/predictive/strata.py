"""The Monte Carlo error of a mean of stratified draws.

What an output owes to each unit alone averages out over blocks of draws in which the
unit is dropped in its exact share; what it owes to units together does not. If A is the
share of the first in the variance s² of a draw, then

    Var(mean of T draws) = s²/T (1 - A + A c_T),     c_T = Var(N_T) / (T p (1 - p)),

with N_T the number of drops of a unit, whose variance the design fixes. The same holds
for the means of slices and of blocks, whose spread is seen, and tells A. It is known by
its posterior, from the spread of an output's own slices and blocks and from that of the
others of its batch; the average over A is the variance that is given.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

import torch
from torch import Tensor

from caveat._strata import BLOCK, SLICE, SLICES
from caveat.predictive.moments import Moments, merge, wide_dtype

_OTHERS = 64.0  # degrees of freedom that the other outputs count for at most
_PROBES = 64  # outputs by which is judged how many of them are independent
# 1 - A, what does not average out: from all of it to a hundredth.
_RESTS = tuple(10.0 ** (-k / 12) for k in range(25))


class Counts(NamedTuple):
    """Variances of numbers of drops, over those of independent draws."""

    drawn: float  # in all draws: c_T
    slices: float  # between slices, apart from what blocks differ by
    blocks: float  # between blocks


@final
@dataclass(frozen=True)
class Design:
    """How the draws were stratified.

    Attributes
    ----------
    rates : tuple of float
        The drop rate of each site; 0.5 for noise that is no mask.
    """

    rates: tuple[float, ...]

    def counts(self, n_draws: int) -> Counts:
        """Of ``n_draws`` draws; where sites differ, what makes no error too small."""
        found = [_Site(rate).counts(n_draws) for rate in sorted(set(self.rates))]
        drawn, slices, blocks = zip(*found, strict=True)
        return Counts(sum(drawn) / len(found), min(slices), min(blocks))


class _Site:
    """The number of drops of a unit with this rate, in the design of ``_strata``."""

    def __init__(self, rate: float) -> None:
        self._one = rate * (1.0 - rate)  # variance of one draw
        fewest, share = divmod(BLOCK * rate, 1)
        totals = ((fewest, 1.0 - share), (fewest + 1, share))
        self._block = share * (1.0 - share)
        # A block's drops go evenly to its slices, the rest to a random choice of them.
        uneven = sum(w * _uneven(total) for total, w in totals)
        self._slice = uneven + self._block / SLICES**2
        self._pair = self._block / SLICES**2 - uneven / (SLICES - 1)
        mean = SLICE * rate
        self._ways = SLICE * mean - mean**2 - self._slice  # E c (16 - c)

    def counts(self, n_draws: int) -> Counts:
        if self._one == 0.0:
            return Counts(0.0, 0.0, 0.0)
        slices, blocks = n_draws // SLICE, n_draws // BLOCK
        rest = slices - blocks * SLICES
        pairs = blocks * math.comb(SLICES, 2) + math.comb(rest, 2)
        between = (slices - 1) * self._slice - 2 * pairs * self._pair / max(slices, 1)
        between -= (max(blocks, 1) - 1) * self._block / SLICES
        within = max(slices - max(blocks, 1), 1)
        return Counts(
            self._drawn(n_draws) / (n_draws * self._one),
            between / within / (SLICE * self._one),
            self._block / (BLOCK * self._one),
        )

    def _drawn(self, n_draws: int) -> float:
        """Variance of the number of drops: whole blocks, slices, and single draws."""
        blocks, rest = divmod(n_draws, BLOCK)
        slices, single = divmod(rest, SLICE)
        part = single / SLICE
        found = blocks * self._block
        found += (slices + part**2) * self._slice
        found += (slices * (slices - 1) + 2 * slices * part) * self._pair
        return found + part * (1 - part) * self._ways / (SLICE - 1)


def _uneven(total: float) -> float:
    """Variance of a slice's share of the drops that do not divide by four."""
    left = total % SLICES / SLICES
    return left * (1.0 - left)


@final
class Slices:
    """Means of slices and of blocks of draws that come in order, from draw 0 on.

    Parameters
    ----------
    design : Design or None
        None for independent draws: then nothing is gathered.
    one_unit : bool
        Outputs are in the same unit, as probabilities are: those that vary more count
        for more. Else all outputs of a row count the same.
    """

    def __init__(self, design: Design | None, *, one_unit: bool = False) -> None:
        self._one_unit = one_unit
        self._design = design if design is not None and design.rates else None
        self._slices, self._blocks = _Groups(SLICE), _Groups(SLICES)
        self._probes: list[Tensor] = []

    def add(self, draws: Tensor) -> None:
        """Take in the next draws, (draws, batch, *event)."""
        if self._design is None or not draws[0].numel():
            return
        self._blocks.add(self._slices.add(draws))
        flat = draws.detach().flatten(1)
        step = math.ceil(flat.shape[1] / _PROBES)
        self._probes.append(flat[:, ::step].to(wide_dtype(draws.device)))

    def mean_error(self, moments: Moments) -> Tensor:
        """Monte Carlo standard error of the mean of all draws, whose moments they are.

        Before the second slice is complete it is that of independent draws, which is
        larger.
        """
        plain = moments.mean_error
        between = self._slices.moments
        if self._design is None or between is None or between.count < 2:
            return plain
        variance = moments.scatter / (moments.count - 1)
        counts = self._design.counts(moments.count)
        spreads = list(self._spreads(between, counts))
        others = _effective(torch.cat(self._probes)) - 1.0
        pooled = [_pooled(s.scatter, variance, self._one_unit) for s in spreads]
        left = _remaining(variance, spreads, pooled, counts.drawn, others)
        return plain * left.sqrt()

    def _spreads(self, between: Moments, counts: Counts) -> Iterator["_Spread"]:
        blocks = self._blocks.moments
        n_blocks = 0 if blocks is None else blocks.count
        within = between.scatter
        if blocks is not None and n_blocks > 1:
            within = (within - SLICES * blocks.scatter).clamp(min=0.0)
            yield _Spread(BLOCK * blocks.scatter, n_blocks - 1, counts.blocks)
        dof = between.count - max(n_blocks, 1)
        yield _Spread(SLICE * within, dof, counts.slices)


class _Spread(NamedTuple):
    """A sum of squares that is (1 - A + A ``share``) s² times a chi-squared number."""

    scatter: Tensor
    dof: int
    share: float  # of A that is left


class _Groups:
    """Means of groups of so many items in a row."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._open: Tensor | None = None  # sum of the items of the last group
        self._n_open = 0
        self.moments: Moments | None = None  # of the means

    def add(self, items: Tensor) -> Tensor:
        """Take in (items, *shape), and give the means (groups, *shape) now complete."""
        wide = wide_dtype(items.device)
        found = []
        if self._open is not None:
            missing = self._size - self._n_open
            head, items = items[:missing], items[missing:]
            self._open = self._open + head.sum(0, dtype=wide)
            self._n_open += len(head)
            if self._n_open == self._size:
                found.append((self._open / self._size).unsqueeze(0))
                self._open, self._n_open = None, 0
        whole = len(items) // self._size * self._size
        if whole:
            groups = items[:whole].unflatten(0, (-1, self._size))
            found.append(groups.mean(1, dtype=wide))
        if len(items) > whole:
            self._open = items[whole:].sum(0, dtype=wide)
            self._n_open = len(items) - whole
        means = torch.cat(found) if found else items.new_empty((0, *items.shape[1:]))
        if len(means):
            new = Moments.of(means)
            self.moments = new if self.moments is None else merge(self.moments, new)
        return means


def _remaining(
    variance: Tensor,
    spreads: Sequence[_Spread],
    pooled: Sequence[float],
    drawn: float,
    others: float,
) -> Tensor:
    """1 - A + A c_T by the posterior of A, for each output."""
    dof = sum(spread.dof for spread in spreads)
    weight = max(min(others, _OTHERS / dof), 0.0)
    scale = torch.where(variance > 0, variance, torch.inf)
    own = [spread.scatter / scale for spread in spreads]
    scores = []
    for rest in _RESTS:
        score = torch.zeros_like(variance)  # a priori all of them are alike
        for spread, mine, ours in zip(spreads, own, pooled, strict=True):
            level = rest + (1.0 - rest) * spread.share
            score -= 0.5 * spread.dof * (1.0 + weight) * math.log(level)
            score -= (mine + weight * ours) / (2.0 * level)
        scores.append(score)
    posterior = torch.stack(scores).softmax(0)
    values = torch.tensor(_RESTS).to(variance)
    values = values + (1.0 - values) * drawn
    return torch.einsum("a...,a->...", posterior, values)


def _pooled(scatter: Tensor, variance: Tensor, one_unit: bool) -> float:
    """Sum of squares over variance, over all rows; the mean of outputs in own units."""
    axes = tuple(range(variance.dim())) if one_unit else (0,)
    top, bottom = scatter.sum(axes).view(-1), variance.sum(axes).view(-1)
    ratios = (top / bottom)[bottom > 0]
    return float(ratios.mean()) if len(ratios) else 0.0


def _effective(probes: Tensor) -> float:
    """How many independent outputs some outputs (draws, outputs) are worth."""
    centred = probes - probes.mean(0)
    spread = centred.square().mean(0)
    varies = spread > 0
    scores = centred[:, varies] / spread[varies].sqrt()
    n, outputs = scores.shape
    if outputs < 2:
        return 1.0
    gram = scores @ scores.T
    # tr(C²) from pairs of different draws: it has no bias from there being few.
    off = float(gram.square().sum() - gram.diagonal().square().sum()) / (n * (n - 1))
    return min(max(outputs**2 / max(off, outputs), 1.0), float(outputs))
