"""From a subject to a chunk of its draws: traced, and taken apart."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from caveat.errors import UnsupportedModelError
from caveat.exporting.chunks import Chunk, RowPlace, may_compute_together
from caveat.exporting.drawing import SiteNoise
from caveat.exporting.splitting import Parts, split
from caveat.exporting.subjects import ExportSubject, few_rows
from caveat.exporting.tracing import sites_of, trace
from caveat.sampling.inputs import Batch
from caveat.sampling.plans import plan_for

_ROWS = 3  # of the batch that is traced

_ASTRAY = """{name} cannot be exported: the noise at {site!r} has a shape that follows
the batch ({one} for {n} rows, {other} for {m}), and it is not known which numbers
belong to which row (rows that are packed, gathered or mixed)."""


@dataclass(frozen=True)
class Built:
    """A chunk of draws, and what it is called with.

    Attributes
    ----------
    chunk : Chunk
    batch : Batch
        A few rows, as it was traced with.
    axes : tuple of int or None
        For each tensor among its inputs where its rows lie.
    dtype : torch.dtype
        Of what is summed up.
    """

    chunk: Chunk
    batch: Batch
    axes: tuple[int | None, ...]
    dtype: torch.dtype


def tensors_of(batch: Batch) -> list[Tensor]:
    """The tensors of a batch, in order."""
    return [leaf for leaf in batch.leaves if isinstance(leaf, Tensor)]


def build(subject: ExportSubject, batch: Batch, *, together: bool = True) -> Built:
    """A chunk of the draws of a subject; ``together``: of several, if that pays."""
    few = few_rows(batch, _ROWS)
    sampler, model = subject.sampler, subject.sampler.model
    plan = plan_for(model, few)
    summary = subject.summary(few)
    sites = sites_of(sampler, few, plan)
    others = sites_of(sampler, few_rows(batch, _ROWS + 1), plan)
    _check_shapes(type(model).__name__, sites, others)
    sites = subject.readdressed(sites)
    parts = split(trace(sampler, few, sites, subject.pick, together=False))
    mixes = plan.rows_mix
    together = together and may_compute_together(parts, sites, rows_mix=mixes)
    if together:
        several = _together(subject, few, sites)
        together, parts = several is not None, several or parts
    batched = [
        own
        for v, own in zip(few.leaves, few.batched, strict=True)
        if isinstance(v, Tensor)
    ]
    place = RowPlace(batched.index(True), few.axis)
    chunk = Chunk(parts, sites, summary, place, together=together)
    return Built(
        chunk,
        few,
        tuple(few.axis if own else None for own in batched),
        _dtype(chunk, tensors_of(few)),
    )


def _together(
    subject: ExportSubject, few: Batch, sites: Sequence[SiteNoise]
) -> Parts | None:
    """The parts for several draws at a time; None if there is no such graph."""
    try:
        traced = trace(subject.sampler, few, tuple(sites), subject.pick, together=True)
        parts = split(traced)
    except UnsupportedModelError:
        return None
    return parts if parts.repeats else None


def _dtype(chunk: Chunk, inputs: Sequence[Tensor]) -> torch.dtype:
    """The type of what is summed up."""
    draws, slices, seed = torch.arange(1), torch.arange(1), torch.tensor(0)
    with torch.no_grad():
        rows = chunk.rows(inputs)
        noise = chunk.noise(seed, draws, slices, rows)
        return chunk.block(chunk.clean(*inputs), noise, rows, 1).dtype


def _check_shapes(
    name: str, sites: Sequence[SiteNoise], others: Sequence[SiteNoise]
) -> None:
    for one, other in zip(sites, others, strict=True):
        if one.row_axis is None and one.spec.shape != other.spec.shape:
            raise UnsupportedModelError(
                _ASTRAY.format(
                    name=name,
                    site=one.spec.name,
                    one=one.spec.shape,
                    other=other.spec.shape,
                    n=_ROWS,
                    m=_ROWS + 1,
                )
            )
