"""The Monte Carlo error of a mean of stratified draws.

What an output owes to each unit alone averages out over blocks of draws in which the
unit is dropped in its exact share; what it owes to units together does not. If A is the
share of the first in the variance s² of a draw, then

    Var(mean of T draws) = s²/T (1 - A + A c_T),     c_T = Var(N_T) / (T p (1 - p)),

with N_T the number of drops of a unit, whose variance the design fixes. The same holds
for the means of slices and of blocks, whose spread is seen, and tells A. It is known by
its posterior, from the spread of an output's own slices and blocks and from that of the
others of the same call; the average over A is the variance that is given. What the
outputs say together is a handful of sums (:class:`Evidence`) that add up over rows, so
that it does not matter how rows are cut into batches.

A probability cannot be additive where it is all but 0 or 1 and a few draws make its
mean, or where it jumps. A is at most the share that a logistic function of something
additive, and so nearly Gaussian, would have.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, final

import torch
from torch import Tensor

from caveat._strata import BLOCK, SLICE, SLICES
from caveat.predictive.moments import Moments, merge, wide_dtype, working_dtype

_OTHERS = 64.0  # degrees of freedom that the other outputs count for at most
_HEAD = 2 * SLICE  # draws by which is judged how many outputs are independent, and
_PROBES = 16  # outputs of each row
_AT_ONCE = 1 << 14  # outputs whose posteriors are held
_ROWS_AT_ONCE = 1 << 18  # numbers of draws that are summed together
# 1 - A, what does not average out: from all of it to a hundredth, a priori with a
# weight that leans to less of it but for probabilities. Chosen on trained nets.
_LEAN = 0.25
_RESTS = tuple(10.0 ** (-k / 12) for k in range(25))


class Counts(NamedTuple):
    """Variances of numbers of drops, over those of independent draws."""

    drawn: float  # in all draws: c_T
    slices: float  # between slices, apart from what blocks differ by
    blocks: float  # between blocks


@final
@dataclass(frozen=True)
class Stratification:
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
@dataclass(frozen=True, eq=False)
class Evidence:
    """What outputs say together of A: sums over rows.

    Attributes
    ----------
    scatters : tuple of Tensor
        Of the squares of each spread: (outputs,), or of all outputs in one unit.
    variance, additive : Tensor
        Of variances, and of what can be additive of them; of the same shape.
    gram : Tensor, shape (32, 32)
        Products of the first draws with each other, standardised.
    n_outputs : int
        That vary, of those in ``gram``.
    """

    scatters: tuple[Tensor, ...]
    variance: Tensor
    additive: Tensor
    gram: Tensor
    n_outputs: int

    def __add__(self, other: "Evidence") -> "Evidence":
        pairs = zip(self.scatters, other.scatters, strict=True)
        return Evidence(
            tuple(mine + theirs for mine, theirs in pairs),
            self.variance + other.variance,
            self.additive + other.additive,
            self.gram + other.gram,
            self.n_outputs + other.n_outputs,
        )

    @property
    def ratios(self) -> list[float]:
        """Sums of squares over variance, by spread: the mean of outputs."""
        return [self._mean(scatter) for scatter in self.scatters]

    @property
    def share(self) -> float:
        """What can be additive, over variance."""
        return self._mean(self.additive)

    @property
    def n_others(self) -> float:
        """How many independent outputs there are beside one of them."""
        n, outputs = len(self.gram), self.n_outputs
        if outputs < 2:
            return 0.0
        # tr(C²) from pairs of different draws: it has no bias from there being few.
        squares = self.gram.square()
        off = float(squares.sum() - squares.diagonal().sum()) / (n * (n - 1))
        return min(max(outputs**2 / max(off, outputs), 1.0), outputs) - 1.0

    def _mean(self, sums: Tensor) -> float:
        found = (sums / self.variance)[self.variance > 0]
        return float(found.mean()) if len(found) else 0.0


Evidences = tuple[Evidence | None, ...]  # of each kind of mean that has errors


def pooled(parts: Sequence[Evidences]) -> Evidences:
    """The evidence of all parts of the rows, which have the same number of draws."""
    found = []
    for same in zip(*parts, strict=True):
        known = [evidence for evidence in same if evidence is not None]
        found.append(reduce(Evidence.__add__, known) if known else None)
    return tuple(found)


class _Spread(NamedTuple):
    """A sum of squares that is (1 - A + A ``share``) s² times a chi-squared number."""

    scatter: Tensor
    dof: int
    share: float  # of A that is left


@final
@dataclass(frozen=True, eq=False)
class Seen:
    """What is kept of the draws of some rows for the errors of their means.

    Attributes
    ----------
    plain : Tensor, shape (batch, *event)
        The errors, if draws were independent.
    evidence : Evidence or None
        What its outputs say of A; None if they cannot tell.
    """

    plain: Tensor
    evidence: Evidence | None = None
    _spreads: tuple[_Spread, ...] = ()  # relative to the variance
    _limit: Tensor | None = None  # of A; 1 without
    _drawn: float = 1.0

    def mean_error(self, evidence: Evidence | None = None) -> Tensor:
        """Monte Carlo standard errors of means.

        ``evidence`` is that of all rows, if there are more than these.
        """
        evidence = self.evidence if evidence is None else evidence
        if evidence is None or not self._spreads or not self.plain.numel():
            return self.plain
        own = [spread.scatter.flatten().split(_AT_ONCE) for spread in self._spreads]
        limit = torch.ones_like(self.plain) if self._limit is None else self._limit
        parts = zip(limit.flatten().split(_AT_ONCE), *own, strict=True)
        left = torch.cat([self._left(evidence, *part) for part in parts])
        return self.plain * left.view_as(self.plain).sqrt()

    def to(self, dtype: torch.dtype) -> "Seen":
        """In another type, to hold less."""
        spreads = tuple(s._replace(scatter=s.scatter.to(dtype)) for s in self._spreads)
        limit = None if self._limit is None else self._limit.to(dtype)
        plain = self.plain.to(dtype)
        return Seen(plain, self.evidence, spreads, limit, self._drawn)

    def _left(self, evidence: Evidence, limit: Tensor, *own: Tensor) -> Tensor:
        """1 - A + A c_T by the posterior of A, for some outputs."""
        # E97: Var(mean of T stratified draws) = s²/T (1 - A + A c_T)
        dof = sum(spread.dof for spread in self._spreads)
        weight = min(evidence.n_others, _OTHERS / dof)
        share, ratios = evidence.share, evidence.ratios
        most = 1.0 - torch.tensor(_RESTS, dtype=limit.dtype, device=limit.device)
        most = most.unsqueeze(-1)
        lean = _LEAN if self._limit is None else 0.0
        score = -lean * torch.log1p(-most)
        for spread, mine, ours in zip(self._spreads, own, ratios, strict=True):
            level = 1.0 - most * limit * (1.0 - spread.share)
            score = score - 0.5 * (spread.dof * level.log() + mine / level)
            common = 1.0 - most * share * (1.0 - spread.share)
            rest = spread.dof * common.log() + ours / common
            score = score - 0.5 * weight * rest
        values = 1.0 - most * limit * (1.0 - self._drawn)
        return (score.softmax(0) * values).sum(0)


@final
class Slices:
    """Means of slices and of blocks of draws that come in order, from draw 0 on.

    Parameters
    ----------
    design : Stratification or None
        None for independent draws: then nothing is gathered.
    probabilities : bool
        Outputs are in the same unit, so those that vary more count for more, and near
        0 and 1 they are not additive. Else all outputs of a row count the same.
    """

    def __init__(
        self, design: Stratification | None, *, probabilities: bool = False
    ) -> None:
        self._probabilities = probabilities
        self._design = design if design is not None and design.rates else None
        self._slices, self._blocks = _Groups(SLICE), _Groups(SLICES)
        self._head = _Head()

    def add(self, draws: Tensor) -> None:
        """Take in the next draws, (draws, batch, *event)."""
        if self._design is None or not draws[0].numel():
            return
        self._blocks.add(self._slices.add(draws))
        self._head.add(draws.detach())

    def seen(self, moments: Moments, least: Tensor | None = None) -> Seen:
        """What is kept of all draws, whose moments they are.

        Before the second slice is complete they count as independent, which gives
        larger errors. Where their variance is below ``least``, that is taken for the
        error in its place.
        """
        plain, between = moments.mean_error, self._slices.moments
        if self._design is None or between is None or between.count < 2:
            return Seen(plain)
        variance = moments.scatter / (moments.count - 1)
        counts = self._design.counts(moments.count)
        spreads = tuple(self._spreads(between, counts))
        limit = _additive_limit(moments.mean, variance) if self._probabilities else None
        additive = variance if limit is None else variance * limit
        evidence = Evidence(
            tuple(self._summed(spread.scatter) for spread in spreads),
            self._summed(variance),
            self._summed(additive),
            *self._head.gram(),
        )
        if least is not None:
            plain = (torch.maximum(variance, least) / moments.count).sqrt()
        scale = torch.where(variance > 0, variance, torch.inf)
        relative = tuple(s._replace(scatter=s.scatter / scale) for s in spreads)
        return Seen(plain, evidence, relative, limit, counts.drawn)

    def mean_error(self, moments: Moments) -> Tensor:
        """Standard errors of the means, by what these rows say alone."""
        return self.seen(moments).mean_error()

    def _summed(self, values: Tensor) -> Tensor:
        """Over rows; and over outputs, if they are in one unit."""
        return values.sum().view(1) if self._probabilities else values.sum(0).view(-1)

    def _spreads(self, between: Moments, counts: Counts) -> Iterator[_Spread]:
        blocks = self._blocks.moments
        n_blocks = 0 if blocks is None else blocks.count
        within = between.scatter
        if blocks is not None and n_blocks > 1:
            within = (within - SLICES * blocks.scatter).clamp(min=0.0)
            yield _Spread(BLOCK * blocks.scatter, n_blocks - 1, counts.blocks)
        dof = between.count - max(n_blocks, 1)
        yield _Spread(SLICE * within, dof, counts.slices)


def errors_of(draws: Tensor, design: Stratification) -> Tensor:
    """Standard errors of the means of draws (draws, batch, *event), all at hand."""
    parts = []
    for rows in some_rows(draws):
        slices = Slices(design)
        slices.add(rows)
        parts.append(slices.seen(Moments.of(rows)))
    (evidence,) = pooled([(part.evidence,) for part in parts])
    return torch.cat([part.mean_error(evidence) for part in parts])


def some_rows(draws: Tensor) -> Iterator[Tensor]:
    """Draws (draws, batch, ...) of some rows at a time."""
    per_row = max(draws[:, :1].numel(), 1)
    return iter(draws.split(max(_ROWS_AT_ONCE // per_row, 1), dim=1))


def _additive_limit(mean: Tensor, variance: Tensor) -> Tensor:
    """What can be additive of the variance of probabilities, at most.

    The share of Var p that is linear in a Gaussian L, if p is a logistic function of
    it, to 0.1 or so: log(1 + v) / v near 0 and 1, where p is nearly exp(L), and 2/π
    where p jumps from 0 to 1.
    """
    nearest = torch.minimum(mean, 1.0 - mean).clamp(min=1e-15)
    # E98: A <= log(1 + u)/u (1 - (1 - 2/pi) (V/(q (1 - q)))²), u = V (1 - 2q)²/q²
    skewed = variance * ((1.0 - 2.0 * nearest) / nearest).square()
    tail = skewed.log1p() / skewed.clamp(min=1e-6)
    jump = (variance / (nearest * (1.0 - nearest))).clamp(max=1.0)
    share = torch.where(skewed < 1e-6, 1.0, tail)
    return share * (1.0 - (1.0 - 2.0 / math.pi) * jump.square())


class _Head:
    """The first draws of some outputs of each row, until they are all there."""

    def __init__(self) -> None:
        self._held: list[Tensor] = []
        self._missing = _HEAD
        self._gram: tuple[Tensor, int] | None = None

    def add(self, draws: Tensor) -> None:
        if not self._missing:
            return
        flat = draws[: self._missing].flatten(2) if draws.dim() > 2 else draws
        flat = flat[: self._missing]
        if flat.dim() > 2:
            flat = flat[..., :: math.ceil(flat.shape[2] / _PROBES)]
        self._held.append(flat.flatten(1).to(working_dtype(flat.dtype), copy=True))
        self._missing -= len(flat)
        if not self._missing:
            self.gram()  # and let the draws go: other batches may come

    def gram(self) -> tuple[Tensor, int]:
        """Products of draws with each other, and how many outputs vary."""
        if self._gram is None:
            assert not self._missing
            held = torch.cat(self._held)
            parts = [_gram(part) for part in held.split(_AT_ONCE, dim=1)]
            grams, counts = zip(*parts, strict=True)
            self._gram = torch.stack(grams).sum(0), sum(counts)
            self._held = []
        return self._gram


def _gram(draws: Tensor) -> tuple[Tensor, int]:
    wide = draws.to(wide_dtype(draws.device))
    centred = wide - wide.mean(0)
    spread = centred.square().mean(0)
    varies = spread > 0
    scores = centred[:, varies] / spread[varies].sqrt()
    return scores @ scores.T, scores.shape[1]


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
