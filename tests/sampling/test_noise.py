"""Laws of noise: distribution, addressing, layouts."""

import math

import pytest
import torch
from scipy import stats

from caveat.sampling.noise import (
    Exponential,
    Integers,
    Layout,
    Mask,
    NoiseSpec,
    Normal,
    Uniform,
)

N = 40_000
FALSE_ALARM = 1e-6


def spec(law, shape, dtype=torch.float32, **rows):
    return NoiseSpec("site", law, shape, dtype, torch.device("cpu"), **rows)


@pytest.mark.parametrize(
    ("law", "reference"),
    [
        (Uniform(-1.0, 3.0), stats.uniform(-1, 4)),
        (Normal(2.0, 0.5), stats.norm(2, 0.5)),
        (Exponential(4.0), stats.expon(scale=0.25)),
    ],
)
def test_continuous_laws_have_their_distribution(law, reference):
    values = spec(law, (200,), torch.float64).sample(0, range(N // 200)).flatten()
    assert stats.kstest(values.numpy(), reference.cdf).pvalue > FALSE_ALARM


@pytest.mark.parametrize("keep_prob", [0.05, 0.5, 0.9, 1 - 2**-20])
def test_masks_keep_at_their_rate(keep_prob):
    values = spec(Mask(keep_prob, 2.0), (200,)).sample(0, range(N // 200))
    assert set(values.unique().tolist()) <= {0.0, 2.0}
    kept = int((values > 0).sum())
    assert stats.binomtest(kept, N, keep_prob).pvalue > FALSE_ALARM


def test_integers_are_uniform_on_their_range():
    values = spec(Integers(-2, 5), (200,), torch.int64).sample(0, range(N // 200))
    counts = torch.bincount(values.flatten() + 2, minlength=7)
    assert len(counts) == 7
    assert stats.chisquare(counts.numpy()).pvalue > FALSE_ALARM


def test_uniform_stays_below_its_upper_end_in_low_precision():
    values = spec(Uniform(), (1000,)).sample(0, range(1000))
    assert 0.0 <= float(values.min()) and float(values.max()) < 1.0


def test_a_shorter_block_is_the_start_of_a_longer_one():
    long = spec(Mask(0.5), (6, 8)).sample(3, range(10))
    short = spec(Mask(0.5), (4, 5)).sample(3, range(2, 7))
    assert torch.equal(short, long[2:7, :4, :5])


def test_numbers_are_addressed_from_their_starts_on():
    whole = spec(Mask(0.5), (3, 8)).sample(3, range(4))
    part = spec(Mask(0.5), (3, 5), starts=(0, 3)).sample(3, range(4))
    assert torch.equal(part, whole[:, :, 3:])


@pytest.mark.parametrize("rows_first", [True, False])
def test_layout_takes_folded_rows_apart(rows_first):
    rows, heads = 3, 2
    x = torch.arange(rows * heads)
    layout = Layout(0, heads, rows_first)
    split = x.view(layout.split(x.shape, rows))
    assert split.shape[layout.row_axis] == rows
    first = split.select(layout.row_axis, 0).flatten().tolist()
    assert first == ([0, 1] if rows_first else [0, 3])
    assert layout.fits(x.shape, rows) and not layout.fits(x.shape, 2)


@pytest.mark.parametrize(
    "law",
    [Mask(0.5, 2.0), Uniform(0, 2), Normal(1.0), Exponential(1.0), Integers(0, 3)],
)
def test_centre_is_a_value_the_law_could_take(law):
    assert math.isfinite(law.centre)


# Pinned: these never change, so that what was drawn once can be drawn again, by any
# runtime. Row 1 of masks of 40 units, as bits, in draws 0, 17 and 130.
MASKS = {
    ("2#0", 0, False): (0x7DFDE9977B, 0xBEDACD7FBF, 0x37D3F9BFFC),
    ("2#0", 0, True): (0xF77F7E6ADF, 0xF773FEBFAC, 0xF55CFBFED7),
    ("2#0", 1, False): (0xB7F9B4BFF3, 0xCF2B87FF3F, 0xF6EF8FDF55),
    ("2#0", 1, True): (0xBEF7BC6B9A, 0x736F7FDFC3, 0xD72F7D9EE1),
    ("2#0", -1, False): (0xD5777CC1DE, 0x7563ACDFF9, 0x9AFE5DEE1D),
    ("2#0", -1, True): (0xE7FA2ADFD1, 0xCBD8FFEAA0, 0xF4F6FADCF9),
    ("2#0", 2**63 + 5, False): (0xFAFF7A38DB, 0xC86B9DBDFF, 0x6CF7BF5ED5),
    ("2#0", 2**63 + 5, True): (0xD0E7E7EF23, 0xFFAABFBFF7, 0x3EFB8A7FDB),
    ("body.drop#1", 0, False): (0xFFB4AFC5BA, 0xEFFFFFFDCB, 0xD3FDD8FFCF),
    ("body.drop#1", 0, True): (0x7FFBF6EE6E, 0xBC67D2FB13, 0x5FF6FF7D7F),
    ("body.drop#1", 1, False): (0xC7EFDB97C5, 0x78D97CEFBD, 0xB897F1F0FB),
    ("body.drop#1", 1, True): (0xE957FDBFCE, 0x0AF36EFFBF, 0xFFF1C576FD),
}
# At (draw, row, unit) = (0, 0, 0), (17, 1, 3) and (130, 0, 39).
NUMBERS = {
    (Uniform(), 0, False): (0.18381711335306, 0.94688363816932, 0.22361802449879),
    (Uniform(), 0, True): (0.15564599918529, 0.10364691926092, 0.97095251342498),
    (Uniform(), -1, False): (0.24961445546761, 0.15969611481358, 0.59855879737654),
    (Uniform(), -1, True): (0.07109669704008, 0.57787374453255, 0.45052703046146),
    (Normal(), 0, False): (-0.90091366190033, 1.61536015494715, -0.76003101004925),
    (Normal(), 0, True): (-1.01251474887271, -1.26104165840974, 1.89498059041824),
    (Normal(), -1, False): (-0.67570350381276, -0.99570761385827, 0.24961848089341),
    (Normal(), -1, True): (-1.46767180095104, 0.19645696791359, -0.12432991675281),
}


def pinned(name, law, seed, stratified):
    cpu = torch.device("cpu")
    site = NoiseSpec(name, law, (2, 40), torch.float64, cpu, stratified=stratified)
    return site.sample(seed, range(131))


@pytest.mark.parametrize(("address", "expected"), MASKS.items())
def test_pinned_masks(address, expected):
    name, seed, stratified = address
    masks = pinned(name, Mask(0.7), seed, stratified)[[0, 17, 130], 1]
    bits = masks.long() << torch.arange(39, -1, -1)
    assert tuple(bits.sum(1).tolist()) == expected


@pytest.mark.parametrize(("address", "expected"), NUMBERS.items())
def test_pinned_numbers(address, expected):
    law, seed, stratified = address
    found = pinned("2#0", law, seed, stratified)[[0, 17, 130], [0, 1, 0], [0, 3, 39]]
    assert found.tolist() == pytest.approx(expected, abs=1e-12)
