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
