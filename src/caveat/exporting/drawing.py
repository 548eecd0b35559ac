"""The noise of one site inside a graph: a law, an address, and where the rows lie."""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from caveat._strata import DropCounts, counts_of
from caveat.errors import UnsupportedModelError
from caveat.exporting.hashing import (
    DrawAddress,
    bits_at,
    dropped_at,
    normal_quantile,
    site_key,
    stratified_uniform_at,
    uniform_at,
)
from caveat.sampling.noise import (
    Exponential,
    Integers,
    Layout,
    Mask,
    NoiseSpec,
    Normal,
    Uniform,
)
from caveat.sampling.passes import SiteCall


@dataclass(frozen=True)
class SiteNoise:
    """What a site draws.

    Attributes
    ----------
    call : SiteCall
        The site as it was met: its name, kind and rate.
    spec : NoiseSpec
        Law, shape for one row or for those of the example, and type.
    row_axis : int or None
        Where the rows lie in that shape; None if they lie nowhere.
    per_row : bool
        Each row has numbers of its own.
    stream : str
        What the numbers are addressed by.
    offset : int
        What is added to the seed.
    """

    call: SiteCall
    spec: NoiseSpec
    row_axis: int | None
    per_row: bool
    stream: str
    counts: DropCounts | None  # of stratified masks
    offset: int = 0

    @classmethod
    def of(
        cls, call: SiteCall, spec: NoiseSpec, layout: Layout | None, shared: bool
    ) -> Self:
        """From what a pass found out."""
        row_axis = None if layout is None else layout.row_axis
        per_row = layout is not None and not shared
        law, counts = spec.law, None
        if isinstance(law, Mask) and spec.stratified:
            counts = counts_of(1.0 - law.keep_prob)
        return cls(call, spec, row_axis, per_row, spec.name, counts)

    def addressed(self, stream: str, offset: int) -> Self:
        """The same with numbers that are found under another name and seed."""
        return replace(self, stream=stream, offset=offset)

    def draw(self, where: DrawAddress, rows: Any) -> Tensor:
        """Values of shape (draws, *shape), of as many rows if each has its own."""
        shape: list[Any] = list(self.spec.shape)
        if self.per_row and self.row_axis is not None:
            shape[self.row_axis] = rows
        return _values(self, where, shape)


def _values(site: SiteNoise, where: DrawAddress, shape: list[Any]) -> Tensor:
    """The values of a law, by the same steps as in ``sampling/noise.py``."""
    law, dtype = site.spec.law, site.spec.dtype
    key = site_key(where.seed, site.stream, site.offset)
    if isinstance(law, Mask):
        kept = _kept(site, law, key, where, shape).to(dtype)
        return kept if law.scale == 1.0 else kept * law.scale
    drawn = (shape, site.spec.starts)
    if site.spec.stratified:
        values = stratified_uniform_at(key, where, *drawn)
    else:
        values = uniform_at(key, where.draws, *drawn)
    if isinstance(law, Uniform):
        if dtype != torch.float64:
            values = values.clamp(max=1 - 2**-24)
        values = values * (law.high - law.low) + law.low
    elif isinstance(law, Normal):
        values = normal_quantile(values) * law.std + law.mean
    elif isinstance(law, Exponential):
        values = -torch.log(values) / law.rate
    elif isinstance(law, Integers):
        values = torch.floor(values * (law.high - law.low)) + law.low
    else:
        raise UnsupportedModelError(
            f"Noise of the kind {type(law).__name__} cannot be exported. Expected "
            f"masks, or uniform, normal, exponential or whole numbers."
        )
    return values.to(dtype)


def _kept(
    site: SiteNoise, law: Mask, key: Tensor, where: DrawAddress, shape: list[Any]
) -> Tensor:
    starts = site.spec.starts
    if site.counts is not None:
        return ~dropped_at(key, where, site.counts, shape, starts)
    threshold = min(int(law.keep_prob * 2**64), 2**64 - 1) - 2**63
    return bits_at(key, where.draws, shape, starts) < threshold
