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
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from caveat._random import GOLDEN, high_half, mixed, random_bits, signed, unit_interval

SLICE, BLOCK = 16, 64  # draws
SLICES = BLOCK // SLICE  # in a block
_HALF = 32  # bits
_ORDERS = 4096
_TURNS = tuple(itertools.permutations(range(SLICES)))


def slices_of(draws: range) -> range:
    """Numbers of the slices that consecutive draws lie in."""
    return range(draws.start // SLICE, (draws.stop - 1) // SLICE + 1)


def drop_words(
    key: int,
    slices: range,
    drop_rate: float,
    shape: Sequence[int],
    *,
    starts: Sequence[int] = (),
    device: torch.device | None = None,
) -> Tensor:
    """In which draws of some slices each place is dropped.

    Parameters
    ----------
    key : int
        Of the stream.
    slices : range
        Their numbers: slice n holds draws 16 n to 16 n + 15.
    drop_rate : float
        Between 0 and 1.
    shape, starts, device
        As for ``caveat._random.random_bits``.

    Returns
    -------
    Tensor of int16, of shape (slices, *shape)
        Bit t is set where a place is dropped in draw t of the slice.
    """
    blocks = range(slices.start // SLICES, (slices.stop - 1) // SLICES + 1)
    skipped = slices.start - blocks.start * SLICES
    # Of one block only what is asked for; of several, all their slices at once.
    own = slice(skipped, skipped + len(slices)) if len(blocks) == 1 else slice(None)
    base = random_bits(key, blocks, shape, starts=starts, device=device)
    counts = counts_of(drop_rate, device)
    # Whether a place is dropped once more than in all blocks, and where it is dropped
    # more often: one of 48 cases.
    case = (base & (2**_HALF - 1)).mul_(len(_TURNS)).bitwise_right_shift_(_HALF)
    case.add_(base < counts.threshold, alpha=len(_TURNS))
    turns = tables_on(device).steps[own].view(-1, *[1] * base.dim())
    bits = high_half(mixed(base + turns))  # shape: (slices of a block, blocks, *shape)
    place = bits.mul_(counts.sizes[own][:, case]).bitwise_right_shift_(_HALF)
    words = tables_on(device).words[place.add_(counts.starts[own][:, case])]
    words = words.transpose(0, 1).flatten(0, 1)
    return words if len(blocks) == 1 else words[skipped : skipped + len(slices)]


def dropped(words: Tensor, slices: range, draws: range) -> Tensor:
    """Whether each place is dropped in each draw, (draws, *shape) of bool.

    ``words`` are those of ``slices``, which hold all the draws.
    """
    numbers = torch.arange(draws.start, draws.stop, device=words.device)
    bits = tables_on(words.device).bits[numbers % SLICE]
    own = words.index_select(0, numbers.div_(SLICE, rounding_mode="floor") - slices[0])
    return own.bitwise_and_(bits.view(-1, *[1] * (words.dim() - 1))).ne(0)


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
    slices = slices_of(draws)
    blocks = range(slices.start // SLICES, (slices.stop - 1) // SLICES + 1)
    base = random_bits(key, blocks, shape, starts=starts, device=device)
    tables, column = tables_on(device), (-1, *[1] * len(shape))
    numbers = torch.arange(draws.start, draws.stop, device=device)
    number = torch.arange(slices.start, slices.stop, device=device)
    steps = tables.steps[number % SLICES].view(column)
    bits = mixed(base.index_select(0, number // SLICES - blocks.start).add_(steps))
    own_slice = numbers // SLICE - slices.start
    # The 16 cells of a slice go to its draws in a random order, turned at random.
    order = (bits & (_ORDERS - 1)).index_select(0, own_slice)
    order.add_((numbers % SLICE * _ORDERS).view(column))
    turn = high_half(bits).index_select(0, own_slice)
    cells = tables.orders[order].add_(turn).bitwise_and_(SLICE - 1)
    # Which quarter of a cell is met in which slice: a random order for each cell.
    base = base.index_select(0, numbers // BLOCK - blocks.start)
    own_bits = mixed(base.add_((cells + (SLICES + 1)).mul_(signed(GOLDEN))))
    own = numbers // SLICE % SLICES
    quarter = high_half(own_bits).mul_(len(_TURNS)).bitwise_right_shift_(_HALF)
    quarter = tables.turns[quarter.mul_(SLICES).add_(own.view(column))]
    inside = unit_interval(mixed(own_bits.add_(tables.steps[own].view(column))))
    return cells.mul_(SLICES).add_(quarter).double().add_(inside).div_(BLOCK)


class DropCounts(NamedTuple):
    """How often a place is dropped in a slice, by the 48 cases of a block."""

    threshold: int  # below which the bits of a place mean one drop more
    starts: Tensor  # of the words with so many ones, shape: (4, 48)
    sizes: Tensor  # how many there are, shape: (4, 48)


@lru_cache(maxsize=512)
def counts_of(drop_rate: float, device: torch.device | None = None) -> DropCounts:
    """How often places with this rate are dropped."""
    fewest = math.floor(BLOCK * drop_rate)
    threshold = min(int((BLOCK * drop_rate - fewest) * 2**64), 2**64 - 1) - 2**63
    # A block's drops are spread evenly; what is left goes to slices in a random order.
    counts = torch.tensor(
        [
            [
                total // SLICES + (turn[own] < total % SLICES)
                for total in (fewest, min(fewest + 1, BLOCK))
                for turn in _TURNS
            ]
            for own in range(SLICES)
        ]
    )
    sizes = torch.tensor([math.comb(SLICE, k) for k in range(SLICE + 1)])
    starts = sizes.cumsum(0) - sizes
    return DropCounts(threshold, starts[counts].to(device), sizes[counts].to(device))


class StrataTables(NamedTuple):
    """All 16-bit words by their number of ones, and orders of four and of sixteen."""

    words: Tensor  # int16, shape: (65536,)
    bits: Tensor  # int16, one for each draw of a slice, shape: (16,)
    steps: Tensor  # what is added to the bits of a block for its slices, shape: (4,)
    turns: Tensor  # all orders of four, shape: (24 * 4,)
    orders: Tensor  # some orders of sixteen, shape: (16 * 4096,)


@lru_cache
def tables_on(device: torch.device | None = None) -> StrataTables:
    """The tables, on a device."""
    words = torch.arange(1 << SLICE, dtype=torch.int32)
    bits = 1 << torch.arange(SLICE)
    ones = torch.zeros_like(words, dtype=torch.int8)
    for n in range(SLICE):
        ones += words.bitwise_right_shift(n).bitwise_and_(1)
    words = words[torch.argsort(ones, stable=True)]
    steps = torch.arange(1, SLICES + 1) * signed(GOLDEN)
    hashes = mixed(torch.arange(1, SLICE * _ORDERS + 1) * signed(GOLDEN))
    orders = hashes.view(SLICE, _ORDERS).argsort(0).flatten()
    turns = torch.tensor(_TURNS).flatten()
    found = words.to(torch.int16), bits.to(torch.int16), steps, turns, orders
    return StrataTables(*(table.to(device) for table in found))
