"""Random numbers by address: every number is a hash of where it is used.

A mask must be the same whichever batch, chunk or thread asks for it, so nothing
here has a state. The number at coordinates (i, j, …) of draw t in stream s is

    key = mix( hash(s) + mix(seed) )
    mix( mix( key + (t + 1)·c₀ ) + i·c₁ + j·c₂ + … )        (mod 2⁶⁴)

with ``mix`` the finaliser of SplitMix64 [Steele2014]_ and cₖ fixed odd constants.
Any block can be computed on its own, and the block of a longer sequence starts
with that of a shorter one. Only the hash of a name is no arithmetic on 64-bit
integers, and it does not depend on the seed: whoever runs a model elsewhere holds it
as a constant and takes the seed, the draw and the rows as inputs.

.. [Steele2014] G. L. Steele, D. Lea, C. H. Flood. Fast splittable pseudorandom
   number generators. OOPSLA 2014.
"""

import hashlib
import secrets
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import torch
from torch import Tensor

from caveat.errors import InputTypeError

Seed: TypeAlias = torch.Generator | int | None

_MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
MULTIPLIERS = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def as_seed(seed: Seed) -> int:
    """A fixed number for ``seed``: fresh entropy for None, one draw of a Generator."""
    if seed is None:
        return secrets.randbits(63)
    if isinstance(seed, torch.Generator):
        drawn = torch.randint(2**63 - 1, (), generator=seed, device=seed.device)
        return int(drawn)
    if isinstance(seed, bool) or not hasattr(seed, "__index__"):
        raise InputTypeError(
            f"seed must be an integer, a torch.Generator or None. "
            f"Got {seed!r} of type {type(seed).__name__}."
        )
    try:
        return seed.__index__()
    except TypeError as error:  # arrays and tensors all have the method
        raise InputTypeError(
            f"seed must be an integer, a torch.Generator or None. Got {seed!r}; pass "
            f"int(...) of it."
        ) from error


def stream_key(seed: int, stream: str) -> int:
    """A 64-bit key for one stream of numbers under one seed.

    A seed counts modulo 2⁶⁴: -1 is the same as 2⁶⁴ - 1.
    """
    return _mix_int(stream_hash(stream) + _mix_int(seed))


@lru_cache(maxsize=4096)
def stream_hash(stream: str) -> int:
    """64 bits for the name of a stream, the same under every seed."""
    digest = hashlib.blake2b(stream.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def random_bits(
    key: int,
    draws: range,
    shape: Sequence[int] = (),
    *,
    starts: Sequence[int] = (),
    device: torch.device | None = None,
) -> Tensor:
    """64 random bits for every draw in ``draws`` and every coordinate of ``shape``.

    ``starts`` are the first coordinates, for a block that begins further along some
    axes; 0 where it has none.
    """
    per_draw = [_mix_int(key + GOLDEN * (t + 1)) for t in draws]
    bits = torch.tensor([signed(k) for k in per_draw], device=device)
    bits = bits.view(-1, *[1] * len(shape))
    return mixed(bits + _offsets(shape, starts, device))  # shape: (draws, *shape)


def random_uniform(
    key: int,
    draws: range,
    shape: Sequence[int] = (),
    *,
    starts: Sequence[int] = (),
    device: torch.device | None = None,
) -> Tensor:
    """Float64 numbers, uniform on the open interval (0, 1)."""
    return unit_interval(random_bits(key, draws, shape, starts=starts, device=device))


def unit_interval(bits: Tensor) -> Tensor:
    """Random bits as float64 numbers, uniform on the open interval (0, 1)."""
    return ((bits >> 12) & ((1 << 52) - 1)).double().add_(0.5).mul_(2.0**-52)


def high_half(bits: Tensor) -> Tensor:
    """The upper 32 bits, as numbers from 0 on."""
    return _logical_shift(bits, 32)


def _offsets(
    shape: Sequence[int], starts: Sequence[int], device: torch.device | None
) -> Tensor:
    total = torch.zeros([1] * len(shape), dtype=torch.int64, device=device)
    for axis, size in enumerate(shape):
        start = starts[axis] if axis < len(starts) else 0
        coordinate = torch.arange(start, start + size, device=device)
        constant = signed(axis_constant(axis))
        total = total + (coordinate * constant).view(-1, *[1] * (len(shape) - axis - 1))
    return total


def axis_constant(axis: int) -> int:
    """The odd number cₖ that a coordinate on this axis is multiplied by."""
    return _mix_int(GOLDEN * (axis + 1)) | 1


def mixed(bits: Tensor) -> Tensor:
    """SplitMix64 finaliser, in place; int64 has the same low bits as uint64."""
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        bits.bitwise_xor_(_logical_shift(bits, shift)).mul_(signed(multiplier))
    return bits.bitwise_xor_(_logical_shift(bits, 31))


def _logical_shift(bits: Tensor, by: int) -> Tensor:
    return (bits >> by).bitwise_and_((1 << (64 - by)) - 1)


def _mix_int(value: int) -> int:
    value &= _MASK
    for shift, multiplier in zip((30, 27), MULTIPLIERS, strict=True):
        value = ((value ^ (value >> shift)) * multiplier) & _MASK
    return value ^ (value >> 31)


def signed(value: int) -> int:
    """The int64 number with the same 64 bits."""
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value
