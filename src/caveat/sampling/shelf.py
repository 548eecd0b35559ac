"""Draws that are kept, put down batch by batch, and one tensor in the end.

To join tensors takes twice their memory, and how many rows or draws there will be may
not be known before the last has come. So draws are put down in pieces, each a few draws
of all batches. In the end the pieces move into the tensor one after the other, and each
is let go once it has moved: at most a small part is there twice.
"""

import math
import mmap
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import final

import torch
from torch import Tensor

from caveat._memory import give_back
from caveat.errors import ShapeError

_SHARE = 32  # the part of all draws that a piece holds is at most one in so many
_FEW = 64  # draws, of which more are always expected
_LEAST_SLAB = 1 << 16  # bytes
_TIDY_BEYOND = 1 << 23  # bytes

_UNLIKE = """Batch {batch} gives outputs of shape {shape}, the first gave {first}:
all but the rows (axis {axis}) must be the same for the batches to be joined. Pass
batches of one kind, or each in a call of its own."""

NO_ROWS = """The model returns a tensor of shape {shape} without an axis for the rows,
and batches of it cannot be joined. Pass one batch (no batch_size), or read a tensor
that has rows: regress/classify(..., output=lambda out: ...)."""


@final
class Shelf:
    """The draws of one output tensor: (draws, rows, *event), when all are there.

    Parameters
    ----------
    axis : int
        The axis of an output that has the rows, along which batches are joined.
    n_draws : int, optional
        How many draws there will be, if it is known.
    several : bool
        Whether there may be more than one batch. If not, and ``n_draws`` is known,
        draws are put where they stay.
    """

    def __init__(
        self, axis: int = 0, n_draws: int | None = None, *, several: bool = True
    ) -> None:
        self._axis = axis
        self._n_draws = n_draws
        self._several = several
        self._only: Tensor | None = None
        self._pieces: list[_Piece] = []
        self._starts: list[int] = []  # the first draw of each piece
        self._end = 0  # the first draw beyond the pieces
        self._shapes: list[torch.Size] = []  # of the outputs of each batch
        self._like = torch.empty(0)
        # Where the latest draw was put: some draws of a batch, from the first on.
        self._at: Sequence[Tensor] = ()
        self._batch, self._first = -1, 0
        self._tidied = 0  # bytes of the pieces when that was last done

    def put(self, batch: int, draw: int, block: Tensor) -> None:
        """Put down draws of a batch from ``draw`` on; they may have been there."""
        if self._n_draws is not None and not self._several:
            if len(block) == self._n_draws:
                self._only = block.clone()
                return
            if self._only is None:
                self._only = block.new_empty((self._n_draws, *block.shape[1:]))
            self._only[draw : draw + len(block)].copy_(block)
            return
        for number, tensor in enumerate(block, draw):
            at = number - self._first
            if batch != self._batch or not 0 <= at < len(self._at):
                at = self._turn_to(batch, number, tensor)
            self._at[at].copy_(tensor)

    def draws_of(self, batch: int, n_draws: int) -> Iterator[Tensor]:
        """The first draws of a batch, as they lie there: blocks (draws, *shape)."""
        for start, piece in zip(self._starts, self._pieces, strict=True):
            if start < n_draws:
                place = piece.place_of(batch, self._shapes[batch], self._like)
                yield place[: n_draws - start]

    def whole(self, n_draws: int) -> Tensor:
        """The first draws of all batches; the shelf is empty afterwards."""
        if self._only is not None:
            only, self._only = self._only, None
            return only
        shape, several = list(self._shapes[0]), len(self._shapes) > 1
        if several:
            shape[self._axis] = sum(own[self._axis] for own in self._shapes)
        give_back()
        joined = self._like.new_empty((n_draws, *shape))
        self._at, self._batch = (), -1
        for start in self._starts:
            piece = self._pieces.pop(0)
            into = joined[start : start + piece.n_draws]
            first = 0
            for batch, own in enumerate(self._shapes if len(into) else ()):
                part, place = into, piece.place_of(batch, own, joined)
                if several:
                    part = into.narrow(self._axis + 1, first, own[self._axis])
                    first += own[self._axis]
                part.copy_(place[: len(into)])
        return joined

    def _turn_to(self, batch: int, draw: int, tensor: Tensor) -> int:
        """Find the place of some draws of a batch, and which of them this one is."""
        if batch == len(self._shapes):
            self._note(tensor)
            self._tidy_up()
        while draw >= self._end:
            self._starts.append(self._end)
            known = self._n_draws or max(self._end, _FEW)
            self._pieces.append(_Piece(-(-known // _SHARE)))
            self._end += self._pieces[-1].n_draws
        number = bisect_right(self._starts, draw) - 1
        place = self._pieces[number].place_of(batch, tensor.shape, self._like)
        self._at, self._batch, self._first = place.unbind(), batch, self._starts[number]
        return draw - self._first

    def _tidy_up(self) -> None:
        """Now and then, as the shelf fills."""
        size = sum(piece.size for piece in self._pieces)
        if size > 1.05 * self._tidied + _TIDY_BEYOND:
            self._tidied = size
            give_back()

    def _note(self, tensor: Tensor) -> None:
        shape, axis = tensor.shape, self._axis
        self._shapes.append(shape)
        if len(self._shapes) == 1:
            self._like = tensor.new_empty(0)
            return
        first = self._shapes[0]
        if len(first) <= axis:
            raise ShapeError(NO_ROWS.format(shape=tuple(first)))
        if (*shape[:axis], *shape[axis + 1 :]) != (*first[:axis], *first[axis + 1 :]):
            number = len(self._shapes) - 1
            found = {"shape": tuple(shape), "first": tuple(first), "axis": axis}
            raise ShapeError(_UNLIKE.format(batch=number, **found))


@final
class _Piece:
    """So many draws of all batches, in memory that goes back when it is let go."""

    def __init__(self, n_draws: int) -> None:
        self.n_draws = n_draws
        self._slabs: list[Tensor] = []
        self._used = 0  # bytes of the last slab
        self._where = array("q")  # slab and first byte, of one batch after the other

    @property
    def size(self) -> int:
        """Bytes, with those not used yet."""
        return sum(map(len, self._slabs))

    def place_of(self, batch: int, shape: torch.Size, like: Tensor) -> Tensor:
        """The draws of a batch whose outputs have this shape."""
        whole = (self.n_draws, *shape)
        size = math.prod(whole) * like.dtype.itemsize
        while len(self._where) <= 2 * batch:  # others may come to this piece later
            self._where.extend((-1, -1))
        slab, start = self._where[2 * batch : 2 * batch + 2]
        if slab < 0:
            slab, start = self._room(size, like.device)
            self._where[2 * batch : 2 * batch + 2] = array("q", (slab, start))
        return self._slabs[slab][start : start + size].view(like.dtype).view(whole)

    def _room(self, size: int, device: torch.device) -> tuple[int, int]:
        start = -(-self._used // 16) * 16  # where any type may begin
        if not self._slabs or start + size > len(self._slabs[-1]):
            most = max(size, self.size // 4, _LEAST_SLAB)
            self._slabs.append(_slab(most, device))
            start = 0
        self._used = start + size
        return len(self._slabs) - 1, start


def _slab(size: int, device: torch.device) -> Tensor:
    """Bytes that are taken from the system when written, and returned when let go.

    What ``malloc`` frees may stay with the process, beside other things on a page.
    """
    if device.type != "cpu":
        return torch.empty(size, dtype=torch.uint8, device=device)
    if not hasattr(mmap, "MAP_PRIVATE"):  # Windows
        return torch.frombuffer(mmap.mmap(-1, size), dtype=torch.uint8)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):  # a page of 2 MB is taken for its first byte
        with suppress(OSError):  # a kernel without huge pages
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return torch.frombuffer(memory, dtype=torch.uint8)
