"""Some draws of a model in torch: from inputs, a seed and numbers of draws to sums."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from caveat.exporting.drawing import SiteNoise
from caveat.exporting.hashing import DrawAddress, Tables
from caveat.exporting.splitting import Parts
from caveat.exporting.summaries import DrawSummary, State

_HELD = 1 << 22  # numbers that draws computed together may make
_MOST = 64  # draws at a time: a block of the stratified design
_SMALL = 1 << 16  # numbers a row makes, above which draws are computed one by one


@dataclass(frozen=True)
class RowPlace:
    """The input that says how many rows there are, and on which axis."""

    number: int
    axis: int


class Chunk(nn.Module):
    """Some draws of a model on a batch.

    Parameters
    ----------
    parts : Parts
        The traced pass.
    sites : sequence of SiteNoise
        What it draws.
    summary : DrawSummary
        What is asked of the draws.
    rows : RowPlace
        Where the number of rows is read.
    together : bool
        Draws are computed together; else there is one at a time.
    """

    def __init__(
        self,
        parts: Parts,
        sites: Sequence[SiteNoise],
        summary: DrawSummary,
        rows: RowPlace,
        *,
        together: bool,
    ) -> None:
        super().__init__()
        self.clean, self.noisy = parts.clean, parts.noisy
        self.summary, self.sites, self.together = summary, tuple(sites), together
        self._axes, self._output, self.row_place = parts.axes, parts.output, rows
        self._seam = parts.seam
        axes = [i for i, size in enumerate(parts.output) if isinstance(size, tuple)]
        self._row_axis = axes[0] if axes else None
        held = max(1, _HELD // max(1, parts.per_row))
        self.rows_at_once = held if together else 1
        for name, table in Tables.made()._asdict().items():
            self.register_buffer(name, table)

    @property
    def most(self) -> int:
        """Draws at a time, at most."""
        return _MOST if self.together else 1

    def rows(self, inputs: Sequence[Tensor]) -> Any:
        """How many rows there are."""
        return inputs[self.row_place.number].shape[self.row_place.axis]

    def noise(
        self, seed: Tensor, draws: Tensor, slices: Tensor, rows: Any
    ) -> list[Tensor]:
        """The noise of each site, (draws, *shape)."""
        tables = Tables(*(getattr(self, name) for name in Tables._fields))
        where = DrawAddress.of(seed, draws, slices, tables)
        return [site.draw(where, rows) for site in self.sites]

    def block(
        self, seam: Sequence[Tensor], noise: Sequence[Tensor], rows: Any, n_draws: Any
    ) -> Tensor:
        """What the summary reads of each draw, (draws, batch, ...)."""
        if not self.together:
            output = self.noisy(*seam, *(values[0] for values in noise))
            return self.summary.of_output(output.unsqueeze(0))
        values = [
            _repeated(v, a, n_draws) for v, a in zip(seam, self._axes, strict=True)
        ]
        own = [
            _in_rows(v, site, rows, n_draws)
            for v, site in zip(noise, self.sites, strict=True)
        ]
        output, axis = self.noisy(*values, *own), self._row_axis
        assert axis is not None
        shape = output.shape
        split = (*shape[:axis], n_draws, shape[axis] // n_draws, *shape[axis + 1 :])
        return self.summary.of_output(output.reshape(split).movedim(axis, 0))

    def output_shape(self, rows: Any) -> list[Any]:
        """The shape of the output of one draw."""
        return _shape(self._output, rows)

    def seam_shapes(self, rows: Any) -> list[list[Any]]:
        """The shapes of the values of the seam."""
        return [_shape(sizes, rows) for sizes in self._seam]

    def empty(self, rows: Any, dtype: torch.dtype) -> State:
        """What is carried before the first draw."""
        like = torch.zeros((0, *self.output_shape(rows)), dtype=dtype)
        shape = self.summary.of_output(like).shape[1:]
        return self.summary.empty(shape, dtype)


def _shape(sizes: Sequence[int | tuple[int]], rows: Any) -> list[Any]:
    return [n if isinstance(n, int) else n[0] * rows for n in sizes]


def _repeated(value: Tensor, axis: int | None, n_draws: Any) -> Tensor:
    """A value of the seam for each draw, one after the other along its rows."""
    if axis is None:
        return value
    shape = value.shape
    wide = value.unsqueeze(axis).expand(*shape[:axis], n_draws, *shape[axis:])
    return wide.reshape(*shape[:axis], n_draws * shape[axis], *shape[axis + 1 :])


def _in_rows(value: Tensor, site: SiteNoise, rows: Any, n_draws: Any) -> Tensor:
    """Noise (draws, *shape) with the draws along the rows."""
    axis = site.row_axis
    assert axis is not None
    moved = value.movedim(0, axis)  # draws, then rows
    shape = moved.shape
    wide = moved.expand(*shape[: axis + 1], rows, *shape[axis + 2 :])
    return wide.reshape(*shape[:axis], n_draws * rows, *shape[axis + 2 :])


def may_compute_together(
    parts: Parts, sites: Sequence[SiteNoise], *, rows_mix: bool
) -> bool:
    """Whether rows of several draws may stand in one batch, and it pays."""
    has_rows = sum(isinstance(size, tuple) for size in parts.output) == 1
    known = all(site.row_axis is not None for site in sites)
    small = parts.per_row <= _SMALL
    return has_rows and known and small and parts.repeats and not rows_mix
