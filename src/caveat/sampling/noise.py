"""What is drawn at a site: a law, a shape, and where the rows of the batch lie.

A site's noise is a function of its address alone (seed, site name, draw number,
coordinates; see ``caveat._random``). With shared masks the coordinates leave the
row out, so that one draw of ω serves all rows and is a function of x.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from caveat._random import random_bits, random_uniform, stream_key
from caveat._strata import drop_words, dropped, slices_of, stratified_uniform


@dataclass(frozen=True)
class Layout:
    """Where the rows of a batch lie in a tensor of size ``rows * factor`` on ``axis``.

    Attention often folds heads into the batch: index = row * factor + head
    (``rows_first``), or head * rows + row. ``tokens``: the factor are the tokens of a
    sequence, which keep an axis of their own if there is but one. ``regroup`` (start,
    stop, sizes): axes after the rows that stand for others, of these sizes.
    """

    axis: int
    factor: int = 1
    rows_first: bool = True
    tokens: bool = False
    regroup: tuple[int, int, tuple[int, ...]] | None = None

    @property
    def is_folded(self) -> bool:
        """Whether axes have to be taken apart."""
        return self._takes_apart or self.regroup is not None

    @property
    def _takes_apart(self) -> bool:
        return self.factor > 1 or self.tokens

    def fits(self, shape: Sequence[int], rows: int) -> bool:
        """Whether a tensor of this shape can hold ``rows`` rows in this layout."""
        return self.axis < len(shape) and shape[self.axis] == rows * self.factor

    def split(self, shape: Sequence[int], rows: int) -> tuple[int, ...]:
        """``shape`` with the folded axis taken apart."""
        if self.regroup is not None:
            start, stop, sizes = self.regroup
            shape = (*shape[:start], *sizes, *shape[stop:])
        if not self._takes_apart:
            return tuple(shape)
        pair = (rows, self.factor) if self.rows_first else (self.factor, rows)
        return (*shape[: self.axis], *pair, *shape[self.axis + 1 :])

    @property
    def row_axis(self) -> int:
        """The axis of rows after :meth:`split`."""
        return self.axis + (self._takes_apart and not self.rows_first)


class Law(Protocol):
    """A distribution that maps random addresses to values."""

    @property
    def centre(self) -> float:
        """A typical value, for passes in which nothing should be random."""

    def sample(self, spec: "NoiseSpec", key: int, draws: range) -> Tensor:
        """Values of shape (draws, *spec.shape)."""


@dataclass(frozen=True)
class NoiseSpec:
    """All that is needed to draw the noise of one site, for any draws."""

    name: str
    law: Law
    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    starts: tuple[int, ...] = ()  # first coordinates; 0 where there is none
    stratified: bool = False

    @property
    def reads(self) -> tuple[int, ...]:
        """No constant of a tape."""
        return ()

    def sample(self, seed: int, draws: range) -> Tensor:
        """The noise of these draws, of shape (draws, *shape)."""
        return self.law.sample(self, stream_key(seed, self.name), draws)

    def fixed(self, seed: int, draws: range) -> Tensor:
        """All of it."""
        return self.sample(seed, draws)

    def finished(self, drawn: Tensor, constants: dict[int, Tensor]) -> Tensor:
        """What was drawn, as it is."""
        return drawn

    def stream(self, seed: int) -> Callable[[range], Tensor]:
        """:meth:`fixed` for draws that follow each other: shared work is done once."""
        key = stream_key(seed, self.name)
        if self.stratified and isinstance(self.law, Mask):
            return StratifiedMasks(self, self.law, key)
        return partial(self.law.sample, self, key)

    @property
    def numel(self) -> int:
        """Numbers per draw."""
        return math.prod(self.shape)

    def bits(self, key: int, draws: range) -> Tensor:
        """64 random bits for each number."""
        return random_bits(key, draws, self.shape, **self.place)

    def uniform(self, key: int, draws: range) -> Tensor:
        """A number in (0, 1), in double precision, for each number."""
        drawn = stratified_uniform if self.stratified else random_uniform
        return drawn(key, draws, self.shape, **self.place)

    @property
    def place(self) -> dict[str, Any]:
        """Where the numbers of the site begin, and where they are made."""
        return {"starts": self.starts, "device": self.device}


@dataclass(frozen=True)
class Mask:
    """``scale`` with probability ``keep_prob``, else 0."""

    keep_prob: float
    scale: float = 1.0

    @property
    def centre(self) -> float:
        return self.scale

    def sample(self, spec: NoiseSpec, key: int, draws: range) -> Tensor:
        if spec.stratified:
            return StratifiedMasks(spec, self, key)(draws)
        threshold = min(int(self.keep_prob * 2**64), 2**64 - 1) - 2**63
        return self.scaled(spec.bits(key, draws) < threshold, spec.dtype)

    def scaled(self, kept: Tensor, dtype: torch.dtype) -> Tensor:
        """The mask of what is kept; it may be of whole numbers if nothing is scaled."""
        values = kept.to(dtype)
        return values if self.scale == 1.0 else values.mul_(self.scale)


class StratifiedMasks:
    """Masks of a site for draws that follow each other.

    A word for each unit says in which of 16 draws it is dropped. The last words are
    remembered, so that a large site is not made anew for every few draws.
    """

    def __init__(self, spec: NoiseSpec, mask: Mask, key: int) -> None:
        self._spec = spec
        self._mask = mask
        self._key = key
        self._slices = range(0)
        self._words: Tensor | None = None

    def __call__(self, draws: range) -> Tensor:
        """Masks (draws, *shape)."""
        slices = slices_of(draws)
        kept = ~dropped(self._remembered(slices), slices, draws)
        return self._mask.scaled(kept, self._spec.dtype)

    def _remembered(self, slices: range) -> Tensor:
        """Words of these slices, of which the last is kept for the next draws."""
        known = self._words is not None and slices.start in self._slices
        new = slices[1:] if known else slices
        parts = [self._words] if known and self._words is not None else []
        if new:
            rate = 1.0 - self._mask.keep_prob
            spec = self._spec
            parts.append(drop_words(self._key, new, rate, spec.shape, **spec.place))
        words = parts[0] if len(parts) == 1 else torch.cat(parts)
        self._slices, self._words = slices[-1:], words[-1:].clone()
        return words


@dataclass(frozen=True)
class Uniform:
    """Uniform on (low, high)."""

    low: float = 0.0
    high: float = 1.0

    @property
    def centre(self) -> float:
        return (self.low + self.high) / 2

    def sample(self, spec: NoiseSpec, key: int, draws: range) -> Tensor:
        values = spec.uniform(key, draws)
        if spec.dtype != torch.float64:
            values.clamp_(max=1 - 2**-24)  # rounding must not reach the open end
        return values.mul_(self.high - self.low).add_(self.low).to(spec.dtype)


@dataclass(frozen=True)
class Normal:
    """Gaussian with this mean and standard deviation."""

    mean: float = 0.0
    std: float = 1.0

    @property
    def centre(self) -> float:
        return self.mean

    def sample(self, spec: NoiseSpec, key: int, draws: range) -> Tensor:
        standard = torch.special.ndtri(spec.uniform(key, draws))
        return standard.mul_(self.std).add_(self.mean).to(spec.dtype)


@dataclass(frozen=True)
class Exponential:
    """Exponential with this rate."""

    rate: float = 1.0

    @property
    def centre(self) -> float:
        return 1.0 / self.rate

    def sample(self, spec: NoiseSpec, key: int, draws: range) -> Tensor:
        return spec.uniform(key, draws).log_().neg_().div_(self.rate).to(spec.dtype)


@dataclass(frozen=True)
class Integers:
    """Whole numbers from ``low`` to ``high`` - 1."""

    low: int
    high: int

    @property
    def centre(self) -> float:
        return float((self.low + self.high) // 2)

    def sample(self, spec: NoiseSpec, key: int, draws: range) -> Tensor:
        steps = spec.uniform(key, draws).mul_(self.high - self.low).floor_()
        return steps.add_(self.low).to(spec.dtype)


BOUNDED = (Uniform, Exponential, Integers)
"""Laws whose numbers cannot cross some bound, so that a comparison may be certain."""
