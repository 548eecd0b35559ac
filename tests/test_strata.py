"""Stratified numbers: exact shares, exact laws, independent places, any draw alone.

All seeds are fixed. Tests of distribution reject at p < 1e-6, each of fewer than a
hundred comparisons, so a right generator would fail for less than one seed in 10,000.
"""

import itertools

import pytest
import torch
from scipy import stats

from caveat._random import stream_key
from caveat._strata import (
    BLOCK,
    SLICE,
    drop_words,
    dropped,
    slices_of,
    stratified_uniform,
)
from tests.hashing import mixed_by_hand

KEY = stream_key(0, "test")
REJECT = 1e-6
RATES = [0.004, 0.05, 0.1, 0.25, 0.5, 0.731, 0.99]


def drops(key, draws, rate, shape, **where):
    slices = slices_of(draws)
    words = drop_words(key, slices, rate, shape, **where)
    return dropped(words, slices, draws).long()


@pytest.mark.parametrize("rate", RATES)
def test_the_share_of_drops_is_exact_in_blocks_and_as_even_as_can_be_in_slices(rate):
    found = drops(KEY, range(3 * BLOCK), rate, (2000,))
    blocks = found.view(3, BLOCK, 2000).sum(1)
    assert set(blocks.unique().tolist()) <= {int(64 * rate), int(64 * rate) + 1}
    slices = found.view(12, SLICE, 2000).sum(1).view(3, 4, 2000)
    assert int((slices.amax(1) - slices.amin(1)).max()) <= 1


@pytest.mark.parametrize("rate", RATES)
def test_every_draw_has_its_rate(rate):
    n = 40_000
    found = drops(KEY, range(BLOCK + 5), rate, (n,)).sum(1)
    for count in found.tolist():
        assert stats.binomtest(count, n, rate).pvalue > REJECT


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_the_law_of_one_draw_over_seeds(rate):
    n = 4000
    keys = [stream_key(seed, "site") for seed in range(n)]
    for draw in (0, 17, 70):
        own = range(draw, draw + 1)
        count = sum(int(drops(key, own, rate, (1,))) for key in keys)
        assert stats.binomtest(count, n, rate).pvalue > REJECT


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5])
def test_pairs_of_places_are_uncorrelated(rate):
    blocks, units = 100, 300
    found = drops(KEY, range(blocks * BLOCK), rate, (units,)).double()
    scores = (found - rate) / (rate * (1 - rate)) ** 0.5
    # The mean product of a pair over a block; blocks are independent.
    products = scores.view(blocks, BLOCK, units)
    products = torch.einsum("btu,btv->buv", products, products) / BLOCK
    upper = torch.triu_indices(units, units, 1)
    pairs = products[:, upper[0], upper[1]]
    mean = float(pairs.mean())
    error = float(pairs.mean(0).std() / pairs.shape[1] ** 0.5)
    assert abs(mean) < 5 * error
    # As spread as those of independent draws, or hardly more.
    assert float(pairs.std()) * BLOCK**0.5 == pytest.approx(1.0, abs=0.15)


def test_draws_of_a_block_are_spread_over_the_block_at_random():
    found = drops(KEY, range(BLOCK), 0.1, (50_000,))
    together = (found[0] & found[20]).sum()  # two draws of different slices
    # Of 6.4 drops in 64 draws on average: nearly rate², a little less.
    assert stats.binomtest(int(together), 50_000, 0.01).statistic < 0.0105
    assert int(together) > 0


@pytest.mark.parametrize("draws", [range(1), range(37, 38), range(10, 90)])
def test_any_draw_can_be_made_alone(draws):
    whole = drops(KEY, range(128), 0.3, (4, 5))
    part = drops(KEY, draws, 0.3, (4, 5))
    assert torch.equal(part, whole[draws.start : draws.stop])
    whole = stratified_uniform(KEY, range(128), (4, 5))
    part = stratified_uniform(KEY, draws, (4, 5))
    assert torch.equal(part, whole[draws.start : draws.stop])


def test_rows_further_down_and_longer_axes():
    whole = drops(KEY, range(20), 0.3, (6, 5))
    assert torch.equal(drops(KEY, range(20), 0.3, (2, 5), starts=(4,)), whole[:, 4:])
    assert torch.equal(drops(KEY, range(20), 0.3, (3, 2)), whole[:, :3, :2])
    numbers = stratified_uniform(KEY, range(20), (5, 6))
    part = stratified_uniform(KEY, range(20), (5, 2), starts=(0, 4))
    assert torch.equal(part, numbers[:, :, 4:])


def test_uniform_numbers_meet_every_stratum_once():
    numbers = stratified_uniform(KEY, range(2 * BLOCK), (500,))
    fine = (numbers * BLOCK).long().view(2, BLOCK, 500).sort(1).values
    assert bool((fine == torch.arange(BLOCK)[:, None]).all())
    coarse = (numbers * SLICE).long().view(8, SLICE, 500).sort(1).values
    assert bool((coarse == torch.arange(SLICE)[:, None]).all())
    assert 0 < float(numbers.min()) and float(numbers.max()) < 1


def test_every_draw_is_uniform_and_places_are_independent():
    numbers = stratified_uniform(KEY, range(BLOCK), (20_000,))
    for own in numbers[:: SLICE // 2]:
        assert stats.kstest(own.numpy(), "uniform").pvalue > REJECT
    scores = (numbers[:, :400] - 0.5) * 12**0.5
    products = (scores.T @ scores / BLOCK)[
        *torch.triu_indices(400, 400, 1)  # each pair of places over one block
    ]
    assert abs(float(products.mean())) < 5 * float(products.std()) / 400**0.5
    assert float(products.std()) * BLOCK**0.5 == pytest.approx(1.0, abs=0.1)


def test_pinned_numbers():
    """What any other runtime must give for the same key."""
    words = drop_words(12345, range(6, 7), 0.1, (5,))
    assert words[0].tolist() == WORDS
    numbers = stratified_uniform(12345, range(70, 72), (2,))
    torch.testing.assert_close(
        numbers, torch.tensor(NUMBERS, dtype=torch.float64), atol=1e-12, rtol=0
    )


WORDS = [2080, 18, -32736, 48, 5]
NUMBERS = [
    [0.4691197382018265, 0.6830688690363744],
    [0.7473133765547476, 0.1258304532993516],
]


def word_by_hand(key, number, rate, unit):
    """The design on Python's whole numbers: in which draws of a slice unit is dropped.

    ``rate`` is a fraction over a power of two, so that thresholds are exact.
    """
    golden = 0x9E3779B97F4A7C15
    block, own = divmod(number, 4)
    base = mixed_by_hand(
        mixed_by_hand(key + golden * (block + 1)) + unit * (mixed_by_hand(golden) | 1)
    )
    fewest, rest = int(64 * rate), 64 * rate % 1
    as_signed = base - 2**64 if base >> 63 else base
    total = fewest + (as_signed < rest * 2**64 - 2**63)
    turn = list(itertools.permutations(range(4)))[(base % 2**32) * 24 >> 32]
    count = total // 4 + (turn[own] < total % 4)
    words = [word for word in range(2**16) if word.bit_count() == count]
    bits = mixed_by_hand(base + golden * (own + 1)) >> 32
    return words[bits * len(words) >> 32]


@pytest.mark.parametrize("rate", [0.125, 0.296875 + 2**-10, 0.5])
def test_masks_are_whole_number_arithmetic(rate):
    words = drop_words(KEY, range(2, 6), rate, (4,))
    for number, found in zip(range(2, 6), words.tolist(), strict=True):
        expected = [word_by_hand(KEY, number, rate, unit) for unit in range(4)]
        assert [word % 2**16 for word in found] == expected
