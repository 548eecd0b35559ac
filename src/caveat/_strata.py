"""Stratified numbers by address: over a block of draws every share is exact.

Independent draws drop a unit a random number of times, and most of the Monte Carlo
error of a mean comes from that alone. Here draws come in blocks of 64, each of four
slices of 16. In a block a unit is dropped as often as its rate says, in a random
choice of draws, spread over the slices as evenly as can be; a uniform number falls
once into each 64th of (0, 1), and once into each 16th in every slice. Every single draw
keeps its law exactly, places are independent of each other, and all of it is a hash of
the address (``caveat._random``), so any draw of any block can be made alone.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from caveat._random import GOLDEN, block_bits, high_half, mixed, signed, unit_interval

SLICE, BLOCK = 16, 64  # draws
_SLICES = BLOCK // SLICE
_HALF = 32  # bits
_ORDERS = 4096


class Piece(NamedTuple):
    """Draws of one slice."""

    number: int  # of the slice
    places: range  # in the slice


def pieces(draws: range) -> Iterator[Piece]:
    """Cut consecutive draws where slices begin."""
    start = draws.start
    while start < draws.stop:
        number, place = divmod(start, SLICE)
        stop = min(draws.stop, (number + 1) * SLICE)
        yield Piece(number, range(place, place + stop - start))
        start = stop


def drop_words(
    key: int,
    number: int,
    drop_rate: float,
    shape: Sequence[int],
    *,
    starts: Sequence[int] = (),
    device: torch.device | None = None,
) -> Tensor:
    """In which draws of slice ``number`` each place is dropped.

    Parameters
    ----------
    key : int
        Of the stream.
    number : int
        Of the slice: draws 16 ``number`` to 16 ``number`` + 15.
    drop_rate : float
        Between 0 and 1.
    shape, starts, device
        As for ``caveat._random.random_bits``.

    Returns
    -------
    Tensor of int16, of ``shape``
        Bit t is set where a place is dropped in draw t of the slice.
    """
    block, own = divmod(number, _SLICES)
    base = block_bits(key, block, shape, starts, device)
    tables = _tables(device)
    fewest = math.floor(BLOCK * drop_rate)
    threshold = min(int((BLOCK * drop_rate - fewest) * 2**64), 2**64 - 1) - 2**63
    total = (base < threshold).long().add_(fewest)  # drops in the block
    order = (base & (2**_HALF - 1)).mul_(24) >> _HALF
    extra = tables.turns[:, own][order] < total % _SLICES
    count = (total // _SLICES).add_(extra)  # drops in the slice
    bits = high_half(mixed(base.add_(signed(GOLDEN * (own + 1)))))
    place = bits.mul_(tables.sizes[count]) >> _HALF
    return tables.words[place.add_(tables.starts[count])]


def dropped(words: Tensor, places: range) -> Tensor:
    """Whether each place is dropped, as (draws, *shape) of 0 and 1 (int16)."""
    shifts = torch.arange(
        places.start, places.stop, dtype=torch.int16, device=words.device
    )
    shifts = shifts.view(-1, *[1] * words.dim())
    return (words.unsqueeze(0) >> shifts).bitwise_and_(1)


def stratified_uniform(
    key: int,
    draws: range,
    shape: Sequence[int] = (),
    *,
    starts: Sequence[int] = (),
    device: torch.device | None = None,
) -> Tensor:
    """Float64 numbers in (0, 1), each 64th of it met once in a block of draws.

    Parameters
    ----------
    key : int
        Of the stream.
    draws : range
        Consecutive.
    shape, starts, device
        As for ``caveat._random.random_bits``.

    Returns
    -------
    Tensor, shape (draws, *shape)
    """
    parts = []
    for piece in pieces(draws):
        block, own = divmod(piece.number, _SLICES)
        base = block_bits(key, block, shape, starts, device)
        parts.append(_slice_uniform(base, own, piece.places))
    return torch.cat(parts)


def _slice_uniform(base: Tensor, own: int, places: range) -> Tensor:
    """Numbers of some draws of a slice; ``base`` are the bits of its block."""
    tables = _tables(base.device)
    bits = mixed(base + signed(GOLDEN * (own + 1)))
    order = tables.orders[places.start : places.stop][:, bits & (_ORDERS - 1)]
    # The 16 cells of a slice go to its draws in a random order, turned at random.
    cells = (order + high_half(bits)).bitwise_and_(SLICE - 1)
    # Which quarter of a cell is met in which slice: a random order for each cell.
    own_bits = mixed(base + (cells + (_SLICES + 1)) * signed(GOLDEN))
    quarter = tables.turns[:, own][high_half(own_bits).mul_(24) >> _HALF]
    inside = unit_interval(mixed(own_bits.add_(signed(GOLDEN * (own + 1)))))
    return (cells * _SLICES + quarter).double().add_(inside).div_(BLOCK)


class _Tables(NamedTuple):
    """All 16-bit words by their number of ones, and orders of four and of sixteen."""

    words: Tensor  # int16, shape: (65536,)
    starts: Tensor  # of the words with so many ones, shape: (17,)
    sizes: Tensor  # how many there are
    turns: Tensor  # all orders of four, shape: (24, 4)
    orders: Tensor  # some orders of sixteen, shape: (16, 4096)


@lru_cache
def _tables(device: torch.device | None) -> _Tables:
    words = torch.arange(1 << SLICE)
    ones = torch.stack([(words >> bit) & 1 for bit in range(SLICE)]).sum(0)
    words = words[torch.argsort(ones, stable=True)].to(torch.int16)
    sizes = torch.tensor([math.comb(SLICE, k) for k in range(SLICE + 1)])
    turns = torch.tensor(list(itertools.permutations(range(_SLICES))))
    hashes = mixed(torch.arange(1, SLICE * _ORDERS + 1) * signed(GOLDEN))
    orders = hashes.view(SLICE, _ORDERS).argsort(0)
    found = words, sizes.cumsum(0) - sizes, sizes, turns, orders
    return _Tables(*(table.to(device) for table in found))
