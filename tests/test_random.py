"""Numbers by address: same place, same number; different places, unrelated ones.

All seeds are fixed. Tests of distribution reject at p < 1e-6, each of fewer than ten
comparisons, so a right generator would fail for less than one seed in 100,000.
"""

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from caveat._random import (
    as_seed,
    random_bits,
    random_uniform,
    stream_hash,
    stream_key,
)
from caveat.errors import InputTypeError
from tests.hashing import mixed_by_hand

KEY = stream_key(0, "test")
REJECT = 1e-6


@pytest.mark.parametrize("smaller", [(2, 4, 5), (3, 2, 5), (3, 4, 2), (1, 1, 1)])
def test_a_longer_axis_starts_with_the_numbers_of_a_shorter_one(smaller):
    whole = random_bits(KEY, range(2), (3, 4, 5))
    part = random_bits(KEY, range(2), smaller)
    a, b, c = smaller
    assert torch.equal(part, whole[:, :a, :b, :c])


def test_a_block_of_draws_is_part_of_all_draws():
    whole = random_bits(KEY, range(10), (3, 4))
    blocks = [random_bits(KEY, draws, (3, 4)) for draws in (range(4), range(4, 10))]
    assert torch.equal(torch.cat(blocks), whole)
    assert torch.equal(random_bits(KEY, range(7, 8), (3, 4)), whole[7:8])
    assert torch.equal(random_bits(KEY, range(1, 10, 3), (3, 4)), whole[1:10:3])


def test_starts_shift_the_coordinates():
    whole = random_bits(KEY, range(3), (10, 4))
    assert torch.equal(random_bits(KEY, range(3), (6, 4), starts=(4,)), whole[:, 4:])
    uniform = random_uniform(KEY, range(3), (10, 4))
    shifted = random_uniform(KEY, range(3), (6, 4), starts=(4,))
    assert torch.equal(shifted, uniform[:, 4:])


def test_all_numbers_are_different():
    bits = random_bits(KEY, range(20), (50, 60))
    assert len(bits.unique()) == bits.numel()


def test_numbers_lie_strictly_between_zero_and_one():
    numbers = random_uniform(KEY, range(10), (10_000,))
    assert numbers.dtype == torch.float64
    assert 0 < float(numbers.min()) and float(numbers.max()) < 1


@pytest.mark.parametrize("shape", [(100_000, 1), (1, 100_000), (300, 300)])
def test_numbers_are_uniform_along_every_axis(shape):
    numbers = random_uniform(KEY, range(1), shape).flatten()
    assert stats.kstest(numbers.numpy(), "uniform").pvalue > REJECT


def test_numbers_are_uniform_over_draws():
    numbers = random_uniform(KEY, range(20_000), (1,)).flatten()
    assert stats.kstest(numbers.numpy(), "uniform").pvalue > REJECT


@pytest.mark.parametrize("shift", [0, 31, 56])
def test_bytes_are_equally_frequent(shift):
    bits = random_bits(KEY, range(4), (200, 200)).flatten()
    counts = torch.bincount((bits >> shift) & 0xFF, minlength=256)
    assert stats.chisquare(counts.numpy()).pvalue > REJECT


def test_neighbours_in_pairs_are_jointly_uniform():
    numbers = random_uniform(KEY, range(1), (400, 401))[0]
    cells = (numbers[:, :-1] * 16).long() * 16 + (numbers[:, 1:] * 16).long()
    counts = torch.bincount(cells[:, ::2].flatten(), minlength=256)
    assert stats.chisquare(counts.numpy()).pvalue > REJECT


def rows_that_must_be_unrelated():
    shape, draws = (200, 500), range(1)
    base = random_uniform(KEY, range(2), (201, 501))
    return {
        "draw 0": base[0, :200, :500],
        "draw 1": base[1, :200, :500],
        "next row": base[0, 1:, :500],
        "next column": base[0, :200, 1:],
        "other stream": random_uniform(stream_key(0, "tesu"), draws, shape)[0],
        "other seed": random_uniform(stream_key(1, "test"), draws, shape)[0],
        "far seed": random_uniform(stream_key(-1, "test"), draws, shape)[0],
        "next key": random_uniform(KEY + 1, draws, shape)[0],
    }


def test_draws_streams_seeds_and_neighbours_are_uncorrelated():
    """28 correlations, each within 6 standard errors of 0."""
    streams = rows_that_must_be_unrelated().items()
    for (left, a), (right, b) in itertools.combinations(streams, 2):
        a, b = a.flatten() - 0.5, b.flatten() - 0.5
        scores = 12 * (a * b).sum() / math.sqrt(a.numel())
        assert abs(float(scores)) < 6, f"{left} and {right} are correlated"


def test_stream_keys_tell_seed_and_name_apart():
    keys = {stream_key(seed, name) for seed in range(100) for name in ("a", "b", "1a")}
    assert len(keys) == 300
    assert stream_key(1, "1") != stream_key(11, "")


def test_a_seed_counts_modulo_two_to_the_64():
    assert stream_key(-1, "a") == stream_key(2**64 - 1, "a")
    assert stream_key(3 + 5 * 2**64, "a") == stream_key(3, "a")
    assert len({stream_key(seed, "a") for seed in (-1, 0, 1, 2**63, 2**64 - 2)}) == 5


# Pinned: other runtimes follow the same arithmetic, so these never change.
KEYS = {
    (0, ""): 0x7854EA0C3D92E6F7,
    (0, "2#0"): 0x0D495759A13BCEDB,
    (1, "2#0"): 0xD9644820A16D347C,
    (-1, "2#0"): 0xC7A869FFE0F40F31,
    (2**64 + 1, "2#0"): 0xD9644820A16D347C,
    (12345678901234567890, "encoder.layers.0.dropout1#3"): 0x29EDEFD23532E141,
    (7, "labels"): 0xA47C3E67C31C92DC,
}
HASHES = {"": 0xB4B2797457A0A6E4, "2#0": 0xF6A4780F51522920}


@pytest.mark.parametrize(("address", "key"), KEYS.items())
def test_pinned_keys(address, key):
    assert stream_key(*address) == key


@pytest.mark.parametrize(("name", "found"), HASHES.items())
def test_pinned_hashes(name, found):
    assert stream_hash(name) == found


@pytest.mark.parametrize("seed", [0, 1, -1, 2**63, 987654321])
@pytest.mark.parametrize("name", ["2#0", "encoder.layers.0.dropout1#3"])
def test_a_runtime_needs_only_the_hash_of_the_name(seed, name):
    """All of it again from the seed as an input, in whole numbers modulo 2⁶⁴."""
    golden, draw, row, unit = 0x9E3779B97F4A7C15, 5, 3, 7
    key = mixed_by_hand(stream_hash(name) + mixed_by_hand(seed))
    place = row * (mixed_by_hand(golden) | 1) + unit * (mixed_by_hand(2 * golden) | 1)
    expected = mixed_by_hand(mixed_by_hand(key + (draw + 1) * golden) + place)
    found = random_bits(stream_key(seed, name), range(draw, draw + 1), (4, 8))
    assert int(found[0, row, unit]) % 2**64 == expected
    uniform = random_uniform(stream_key(seed, name), range(draw, draw + 1), (4, 8))
    assert float(uniform[0, row, unit]) == ((expected >> 12) + 0.5) / 2**52


def test_a_whole_number_is_its_own_seed():
    assert as_seed(7) == 7
    assert as_seed(torch.tensor(7)) == 7


def test_no_seed_is_fresh_each_time():
    assert as_seed(None) != as_seed(None)


def test_a_generator_gives_a_seed_and_moves_on():
    generator, twin = (torch.Generator().manual_seed(3) for _ in range(2))
    first = as_seed(generator)
    assert first == as_seed(twin)
    assert first != as_seed(generator)


@pytest.mark.parametrize("seed", [True, 1.5, "1", torch.tensor(1.5), np.arange(2)])
def test_other_seeds_are_refused(seed):
    with pytest.raises(InputTypeError, match=r"seed must be an integer.*Got"):
        as_seed(seed)
