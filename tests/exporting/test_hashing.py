"""Numbers of graphs are those of _random and _strata, bit by bit."""

import pytest
import torch

from caveat._random import random_bits, random_uniform, signed, stream_key
from caveat._strata import counts_of, drop_words, dropped, slices_of, stratified_uniform
from caveat.exporting.hashing import (
    DrawAddress,
    Tables,
    bits_at,
    dropped_at,
    mix,
    normal_quantile,
    plain_mix,
    plain_shift,
    shift,
    site_key,
    stratified_uniform_at,
    uniform_at,
)

SEEDS = (0, 5, -7, 2**63 - 1, 2**64 - 3)
DRAWS = (range(5), range(3, 40), range(60, 140), range(77, 78))
SHAPES = (((3, 7), ()), ((1, 5), ()), ((4,), (5,)), ((), ()), ((2, 1, 3), (0, 4, 1)))


@pytest.fixture(scope="module")
def tables() -> Tables:
    return Tables.made()


def addressed(
    seed: int, draws: range, tables: Tables
) -> tuple[torch.Tensor, DrawAddress]:
    number, slices = torch.tensor(signed(seed)), slices_of(draws)
    where = [torch.arange(r.start, r.stop) for r in (draws, slices)]
    return site_key(number, "a#0"), DrawAddress.of(number, *where, tables)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("draws", DRAWS, ids=str)
def test_bits_masks_and_uniform_numbers_are_the_same(seed, draws, tables):
    own, key = stream_key(seed, "a#0"), addressed(seed, draws, tables)[0]
    where = addressed(seed, draws, tables)[1]
    assert int(key) == signed(own)
    for shape, starts in SHAPES:
        place = (own, draws, shape)
        bits = random_bits(*place, starts=starts)
        assert torch.equal(bits_at(key, where.draws, shape, starts), bits)
        found = uniform_at(key, where.draws, shape, starts)
        assert torch.equal(found, random_uniform(*place, starts=starts))
        found = stratified_uniform_at(key, where, shape, starts)
        assert torch.equal(found, stratified_uniform(*place, starts=starts))
        for rate in (0.05, 0.5, 0.123, 0.999):
            words = drop_words(own, slices_of(draws), rate, shape, starts=starts)
            expected = dropped(words, slices_of(draws), draws)
            found = dropped_at(key, where, counts_of(rate), shape, starts)
            assert torch.equal(found, expected)


def test_an_offset_is_added_to_the_seed():
    key = site_key(torch.tensor(5), "a#0", 2**63 + 1)
    assert int(key) == signed(stream_key(5 + 2**63 + 1, "a#0"))


def test_operations_of_our_own_have_plain_forms():
    bits = torch.tensor([0, 1, -1, 2**62, -(2**63)])
    assert torch.equal(mix(bits), plain_mix(bits))
    assert torch.equal(shift(bits, 31), plain_shift(bits, 31))
    assert plain_shift(torch.tensor(-1), 60).item() == 15


def test_normal_quantiles_are_those_of_torch():
    p = torch.linspace(1e-6, 1 - 1e-6, 10_001, dtype=torch.float64)
    ends = [1e-30, 1e-16, 0.13533528, 0.8646647, 1 - 1e-12]
    p = torch.cat([p, torch.tensor(ends, dtype=torch.float64)])
    expected = torch.special.ndtri(p)
    torch.testing.assert_close(normal_quantile(p), expected, rtol=1e-13, atol=1e-13)
