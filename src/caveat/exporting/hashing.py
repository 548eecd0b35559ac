"""Numbers by address as operations of a graph: twins of ``_random`` and ``_strata``.

There a key, a range of draws and a shape are Python numbers; here the seed, the draws
and the rows are tensors, so that whoever runs the graph says what they are. Only the
hash of a site's name is a constant. ``tests/exporting/test_hashing.py`` compares every
bit.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from caveat._random import (
    GOLDEN,
    MULTIPLIERS,
    axis_constant,
    signed,
    stream_hash,
)
from caveat._strata import BLOCK, SLICE, SLICES, DropCounts, tables_on

_HALF = 32  # bits
_SLICE_BITS, _BLOCK_BITS = 4, 6  # the logarithms of SLICE and BLOCK
_TURNS = 24  # orders of four
_ORDERS = 4096


class Tables(NamedTuple):
    """The tables of ``_strata`` that graphs read, in types that are small.

    They are made before anything is traced: a table made by a graph would be computed
    in every run.
    """

    words: Tensor  # int32, shape: (65536,)
    bits: Tensor  # int32, shape: (16,)
    turns: Tensor  # int64, shape: (24 * 4,)
    orders: Tensor  # uint8, shape: (16 * 4096,)

    @classmethod
    def made(cls) -> Self:
        """All of them."""
        found = tables_on()
        words, bits = found.words.to(torch.int32), 1 << torch.arange(SLICE)
        orders = found.orders.to(torch.uint8)
        return cls(words, bits.to(torch.int32), found.turns, orders)


class DrawAddress(NamedTuple):
    """What a graph is told of the numbers it shall draw, and what follows from it.

    Attributes
    ----------
    seed : Tensor
        One number, int64.
    draws : Tensor, shape (draws,)
        Numbers of consecutive draws, int64.
    blocks, turns : Tensor, shape (slices,)
        Of each slice that these draws lie in, its block and its place there.
    slice, place : Tensor, shape (draws,)
        Of each draw, the slice among these, and its place in that.
    tables : Tables
    """

    seed: Tensor
    draws: Tensor
    blocks: Tensor
    turns: Tensor
    slice: Tensor
    place: Tensor
    tables: Tables

    @classmethod
    def of(cls, seed: Tensor, draws: Tensor, slices: Tensor, tables: Tables) -> Self:
        """Of draws and of the slices that they lie in, both by number."""
        own = shift(draws, _SLICE_BITS) - slices[:1]
        blocks, turns = shift(slices, _BLOCK_BITS - _SLICE_BITS), slices & (SLICES - 1)
        return cls(seed, draws, blocks, turns, own, draws & (SLICE - 1), tables)


# A shape whose axis of rows, if any, has a size that only a run tells.
Shape = Sequence[Any]


@torch.library.custom_op("caveat::mix", mutates_args=())
def mix(bits: Tensor) -> Tensor:
    """SplitMix64 finaliser of int64 numbers; one operation for exporters to translate.

    ONNX shifts unsigned numbers only, so that the plain form takes four times as many
    operations there.
    """
    return plain_mix(bits)


@mix.register_fake
def _(bits: Tensor) -> Tensor:
    return torch.empty_like(bits)


def plain_mix(bits: Tensor) -> Tensor:
    """The same in operations of torch."""
    for by, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        bits = (bits ^ plain_shift(bits, by)) * signed(multiplier)
    return bits ^ plain_shift(bits, 31)


@torch.library.custom_op("caveat::shift", mutates_args=())
def shift(bits: Tensor, by: int) -> Tensor:
    """int64 numbers as unsigned ones, shifted to the right."""
    return plain_shift(bits, by)


@shift.register_fake
def _(bits: Tensor, by: int) -> Tensor:
    return torch.empty_like(bits)


def plain_shift(bits: Tensor, by: int) -> Tensor:
    """The same in operations of torch."""
    return (bits >> by) & ((1 << (64 - by)) - 1)


def site_key(seed: Tensor, stream: str, offset: int = 0) -> Tensor:
    """``_random.stream_key`` of ``seed + offset``."""
    return mix(mix(seed + signed(offset)) + signed(stream_hash(stream)))


def bits_at(
    key: Tensor, numbers: Tensor, shape: Shape, starts: Sequence[int]
) -> Tensor:
    """``_random.random_bits`` of these draws or blocks, (numbers, *shape)."""
    bits = mix(key + (numbers + 1) * signed(GOLDEN))
    bits = bits.view(-1, *[1] * len(shape))
    # Axis by axis: a table of all coordinates would become a constant as large.
    for axis, size in enumerate(shape):
        start = starts[axis] if axis < len(starts) else 0
        coordinate = torch.arange(start, start + size)
        if isinstance(size, int) and size == 1 and start == 0:
            continue
        own = coordinate * signed(axis_constant(axis))
        bits = bits + own.view(-1, *[1] * (len(shape) - axis - 1))
    return mix(bits)


def uniform_at(
    key: Tensor, numbers: Tensor, shape: Shape, starts: Sequence[int]
) -> Tensor:
    """``_random.random_uniform``."""
    return _unit_interval(bits_at(key, numbers, shape, starts))


def dropped_at(
    key: Tensor,
    where: DrawAddress,
    rate: DropCounts,
    shape: Shape,
    starts: Sequence[int],
) -> Tensor:
    """``_strata.drop_words`` and ``_strata.dropped``: bool, (draws, *shape)."""
    column = (-1, *[1] * len(shape))
    base = bits_at(key, where.blocks, shape, starts)  # one for each slice
    case = shift((base & (2**_HALF - 1)) * _TURNS, _HALF)
    case = case + (base < rate.threshold).to(torch.int64) * _TURNS
    bits = shift(mix(base + ((where.turns + 1) * signed(GOLDEN)).view(column)), _HALF)
    which = (where.turns * (2 * _TURNS)).view(column) + case
    sizes, begins = rate.sizes.flatten(), rate.starts.flatten()
    word = begins[which] + shift(bits * sizes[which], _HALF)
    words = where.tables.words[word]  # shape: (slices, *shape)
    bit = where.tables.bits[where.place]
    return (words.index_select(0, where.slice) & bit.view(column)) != 0


def stratified_uniform_at(
    key: Tensor, where: DrawAddress, shape: Shape, starts: Sequence[int]
) -> Tensor:
    """``_strata.stratified_uniform``: float64, (draws, *shape)."""
    column = (-1, *[1] * len(shape))
    base = bits_at(key, where.blocks, shape, starts)
    bits = mix(base + ((where.turns + 1) * signed(GOLDEN)).view(column))
    bits = bits.index_select(0, where.slice)
    order = (bits & (_ORDERS - 1)) + (where.place * _ORDERS).view(column)
    cells = where.tables.orders[order].to(torch.int64)
    cells = (cells + shift(bits, _HALF)) & (SLICE - 1)
    own = where.turns[where.slice].view(column)
    of_cell = (cells + (SLICES + 1)) * signed(GOLDEN)
    of_cell = mix(base.index_select(0, where.slice) + of_cell)
    turn = shift(shift(of_cell, _HALF) * _TURNS, _HALF)
    quarter = where.tables.turns[turn * SLICES + own]
    inside = _unit_interval(mix(of_cell + (own + 1) * signed(GOLDEN)))
    return ((cells * SLICES + quarter).to(torch.float64) + inside) / BLOCK


def normal_quantile(p: Tensor) -> Tensor:
    """``torch.special.ndtri`` in plain arithmetic, for graphs that have no such thing.

    The rational functions of the Cephes library, as torch has them.
    """
    upper = p > 1.0 - _EXP_MINUS_2
    tail = torch.where(upper, 1.0 - p, p)
    y = tail - 0.5
    square = y * y
    middle = y + y * square * _polynomial(square, _P0) / _polynomial(square, _Q0)
    middle = middle * math.sqrt(2 * math.pi)
    x = torch.sqrt(-2.0 * torch.log(tail))
    z = 1.0 / x
    near = z * _polynomial(z, _P1) / _polynomial(z, _Q1)
    far = z * _polynomial(z, _P2) / _polynomial(z, _Q2)
    outside = x - torch.log(x) / x - torch.where(x < 8.0, near, far)
    outside = torch.where(upper, outside, -outside)
    return torch.where(tail > _EXP_MINUS_2, middle, outside)


def _polynomial(x: Tensor, coefficients: Sequence[float]) -> Tensor:
    total = torch.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        total = total * x + coefficient
    return total


def _unit_interval(bits: Tensor) -> Tensor:
    return (shift(bits, 12).to(torch.float64) + 0.5) * 2.0**-52


_EXP_MINUS_2 = 0.13533528323661269189
_P0 = (
    -5.99633501014107895267e1,
    9.80010754185999661536e1,
    -5.66762857469070293439e1,
    1.39312609387279679503e1,
    -1.23916583867381258016e0,
)
_Q0 = (
    1.0,
    1.95448858338141759834e0,
    4.67627912898881538453e0,
    8.63602421390890590575e1,
    -2.25462687854119370527e2,
    2.00260212380060660359e2,
    -8.20372256168333339912e1,
    1.59056225126211695515e1,
    -1.18331621121330003142e0,
)
_P1 = (
    4.05544892305962419923e0,
    3.15251094599893866154e1,
    5.71628192246421288162e1,
    4.40805073893200834700e1,
    1.46849561928858024014e1,
    2.18663306850790267539e0,
    -1.40256079171354495875e-1,
    -3.50424626827848203418e-2,
    -8.57456785154685413611e-4,
)
_Q1 = (
    1.0,
    1.57799883256466749731e1,
    4.53907635128879210584e1,
    4.13172038254672030440e1,
    1.50425385692907503408e1,
    2.50464946208309415979e0,
    -1.42182922854787788574e-1,
    -3.80806407691578277194e-2,
    -9.33259480895457427372e-4,
)
_P2 = (
    3.23774891776946035970e0,
    6.91522889068984211695e0,
    3.93881025292474443415e0,
    1.33303460815807542389e0,
    2.01485389549179081538e-1,
    1.23716634817820021358e-2,
    3.01581553508235416007e-4,
    2.65806974686737550832e-6,
    6.23974539184983293730e-9,
)
_Q2 = (
    1.0,
    6.02427039364742014255e0,
    3.67983563856160859403e0,
    1.37702099489081330271e0,
    2.16236993594496635890e-1,
    1.34204006088543189037e-2,
    3.28014464682127739104e-4,
    2.89247864745380683936e-6,
    6.79019408009981274425e-9,
)


class _Quantile(NamedTuple):
    """The numbers of :func:`normal_quantile`, for those who write it elsewhere."""

    numbers: tuple[tuple[str, float], ...]
    polynomials: dict[str, tuple[str, tuple[float, ...]]]


NORMAL_QUANTILE = _Quantile(
    (
        ("one", 1.0),
        ("half", 0.5),
        ("eight", 8.0),
        ("minus_two", -2.0),
        ("tail_mass", _EXP_MINUS_2),
        ("root_two_pi", math.sqrt(2 * math.pi)),
    ),
    {
        "p0": ("square", _P0),
        "q0": ("square", _Q0),
        "p1": ("z", _P1),
        "q1": ("z", _Q1),
        "p2": ("z", _P2),
        "q2": ("z", _Q2),
    },
)
