"""Errors of means of stratified draws: the design, how draws are cut, who is honest.

All seeds are fixed. Standardised errors are compared with 1 by chi-squared bounds that
a right error leaves for one set of seeds in a million.
"""

import copy

import pytest
import torch
from scipy import stats

from caveat._random import stream_key
from caveat._strata import drop_words, dropped, slices_of
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
)
from caveat.predictive.moments import Moments
from caveat.predictive.strata import (
    Slices,
    Stratification,
    _additive_limit,
    errors_of,
    pooled,
)


def drops(seed, n_draws, rate, units):
    slices = slices_of(range(n_draws))
    words = drop_words(stream_key(seed, "site"), slices, rate, (units,))
    return dropped(words, slices, range(n_draws)).double()


def error_of(draws, design):
    slices = Slices(design)
    slices.add(draws)
    return slices.mean_error(Moments.of(draws))


@pytest.mark.parametrize("rate", [0.02, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("n_draws", [10, 16, 32, 64, 100, 256])
def test_the_design_knows_the_variance_of_numbers_of_drops(rate, n_draws):
    units, one = 20_000, rate * (1 - rate)
    found = drops(0, n_draws, rate, units)
    counts = Stratification((rate,)).counts(n_draws)
    assert near(found.sum(0).var() / (n_draws * one), counts.drawn)
    if n_draws < 32:
        return
    n_slices, n_blocks = n_draws // 16, n_draws // 64
    means = found[: 16 * n_slices].view(n_slices, 16, units).mean(1)
    within = 16 * means.var(0, correction=0) * n_slices
    if n_blocks > 1:
        blocks = means[: 4 * n_blocks].view(n_blocks, 4, units).mean(1)
        between = 64 * blocks.var(0, correction=0) * n_blocks
        assert near(between.mean() / (n_blocks - 1) / one, counts.blocks)
        within -= between
    dof = n_slices - max(n_blocks, 1)
    assert near(within.mean() / dof / one, counts.slices)


def near(found, expected):
    return float(found) == pytest.approx(expected, rel=0.06, abs=1e-9)


def outputs(seed, n_draws, rate=0.25, mixed=0.3):
    """Six outputs, additive in the units but for products of pairs of them."""
    units = drops(seed, n_draws, rate, 60)
    weights = torch.randn(2, 60, 6, generator=torch.Generator().manual_seed(1)).double()
    scores = (units - rate) / (rate * (1 - rate)) ** 0.5
    pairs = scores * scores.roll(1, 1)
    return (scores @ weights[0] + mixed * pairs @ weights[1]).view(n_draws, 6, 1) + 3.0


@pytest.mark.parametrize("n_draws", [32, 64, 100, 256])
@pytest.mark.parametrize("mixed", [0.3, 0.8])
def test_standardised_errors_have_unit_variance(n_draws, mixed):
    n_seeds, design = 200, Stratification((0.25,))
    scores, plain = [], []
    for seed in range(n_seeds):
        draws = outputs(seed, n_draws, mixed=mixed)
        scores.append((draws.mean(0) - 3.0) / error_of(draws, design))
        plain.append((draws.mean(0) - 3.0) / error_of(draws, None))
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], n_seeds) / n_seeds
    assert low < float(torch.stack(scores).square().mean()) < high
    if mixed < 1:  # those of independent draws are far too large
        assert float(torch.stack(plain).square().mean()) < low


@pytest.mark.parametrize("n_draws", [64, 100, 256])
def test_the_error_of_one_output_alone_is_not_too_small(n_draws):
    n_seeds, design = 200, Stratification((0.25,))
    scores = []
    for seed in range(n_seeds):
        draws = outputs(seed, n_draws)[:, :1]
        scores.append((draws.mean(0) - 3.0) / error_of(draws, design))
    high = stats.chi2.ppf(1 - 1e-6, n_seeds) / n_seeds
    assert 0.3 < float(torch.stack(scores).square().mean()) < high


def test_independent_draws_have_the_error_of_independent_draws():
    draws = torch.randn(256, 40, 2, generator=torch.Generator().manual_seed(0))
    plain = error_of(draws, None)
    assert torch.equal(plain, Moments.of(draws).mean_error)
    # What does not come from the design is not taken for stratified.
    assert float((error_of(draws, Stratification((0.5,))) / plain).mean()) > 0.8


@pytest.mark.parametrize("n_draws", [2, 16, 31])
def test_before_two_slices_draws_count_as_independent(n_draws):
    draws = outputs(0, n_draws)
    assert torch.equal(error_of(draws, Stratification((0.25,))), error_of(draws, None))


def cut(draws, sizes, **options):
    """Errors of rows that are summed in parts, by what all of them say together."""
    parts = []
    for rows in draws.split(sizes, dim=1):
        slices = Slices(Stratification((0.25,)), **options)
        slices.add(rows)
        parts.append(slices.seen(Moments.of(rows)))
    (evidence,) = pooled([(part.evidence,) for part in parts])
    return torch.cat([part.mean_error(evidence) for part in parts])


@pytest.mark.parametrize("probabilities", [True, False])
@pytest.mark.parametrize("sizes", [[1] * 6, [4, 2], [5, 1]], ids=str)
def test_how_rows_are_cut_makes_no_difference(sizes, probabilities):
    draws, options = outputs(0, 100), {"probabilities": probabilities}
    if probabilities:
        draws = draws.expand(-1, -1, 2).clone().mul_(0.2).softmax(1)
    whole = cut(draws, [6], **options)
    torch.testing.assert_close(cut(draws, sizes, **options), whole)
    alone = cut(draws[:, :1], [1], **options)
    assert not torch.allclose(alone, whole[:1], rtol=1e-3)  # others have a say


@pytest.mark.parametrize("centre", [0.0, -1.0, -2.0, -4.0])
@pytest.mark.parametrize("width", [0.3, 1.0, 2.0, 8.0])
def test_what_can_be_additive_of_a_probability(centre, width):
    """By integration over a Gaussian number in a logistic function."""
    x = torch.linspace(-7, 7, 4001, dtype=torch.float64)
    weight = (-x.square() / 2).softmax(0)
    for p in (torch.sigmoid(centre + width * x), torch.sigmoid(-centre + width * x)):
        mean = (weight * p).sum()
        variance = (weight * (p - mean).square()).sum()
        exact = (weight * p * x).sum().square() / variance
        assert abs(float(_additive_limit(mean, variance) - exact)) < 0.1


def test_many_rows_are_summed_some_at_a_time(monkeypatch):
    draws, design = outputs(0, 100), Stratification((0.25,))
    whole = errors_of(draws, design)
    monkeypatch.setattr("caveat.predictive.strata._ROWS_AT_ONCE", 200)
    torch.testing.assert_close(errors_of(draws, design), whole)
    monkeypatch.setattr("caveat.predictive.strata._AT_ONCE", 4)
    torch.testing.assert_close(errors_of(draws, design), whole)


def test_errors_stay_with_their_rows():
    draws, design = outputs(0, 100), Stratification((0.25,))
    make = GaussianPredictive.from_draws
    whole = make(draws, precision=1.0, design=design)
    expected = make(draws, precision=1.0, design=design).mean_error
    torch.testing.assert_close(whole[1:3].mean_error, expected[1:3])
    torch.testing.assert_close(whole.rescale(-2.0, 1.0).mean_error, 2.0 * expected)
    torch.testing.assert_close(whole.with_precision(3.0).mean_error, expected)
    both = GaussianPredictive.concatenate([whole[:2], whole[2:]])
    torch.testing.assert_close(both.mean_error, expected)
    torch.testing.assert_close(copy.deepcopy(whole).mean_error, expected)
    found = CategoricalPredictive.from_logits(draws.view(100, 2, 3), design=design)
    parts = CategoricalPredictive.concatenate([found[0], found[1]])
    for name in ("mean_error", "entropy_error", "mutual_information_error"):
        torch.testing.assert_close(getattr(parts, name), getattr(found, name))


def test_a_constant_output_has_no_error_and_harms_no_other():
    draws, design = outputs(0, 100), Stratification((0.25,))
    with_constant = torch.cat([draws, torch.full((100, 1, 1), 2.0)], 1).double()
    found = error_of(with_constant, design)
    assert float(found[-1]) == 0.0 and bool(found.isfinite().all())
    torch.testing.assert_close(found[:-1], error_of(draws, design), rtol=0.2, atol=0)


@pytest.mark.parametrize("cuts", [[100], [1] * 100, [7, 30, 3, 60], [16, 48, 36]])
def test_how_draws_are_cut_makes_no_difference(cuts):
    draws, design = outputs(0, 100), Stratification((0.25,))
    gathered = GaussianAccumulator(1.0, keep_draws=False, design=design)
    for block in draws.split(cuts):
        gathered.add(block)
    whole = GaussianPredictive.from_draws(draws, precision=1.0, design=design)
    torch.testing.assert_close(gathered.result().mean_error, whole.mean_error)
    relative = (whole.mean_error / whole.std).max()
    assert gathered.relative_error() == pytest.approx(float(relative))
    assert torch.equal(whole[2].mean_error, whole.mean_error[2:3])
    assert bool((whole.mean_error < 0.7 * Moments.of(draws).mean_error).all())


@pytest.mark.parametrize("cuts", [[100], [16, 48, 36], [64, 36]])
def test_so_it_is_with_classes(cuts):
    logits = outputs(0, 100).view(100, 2, 3)
    design = Stratification((0.25,))
    gathered = CategoricalAccumulator(0, keep_draws=False, design=design)
    for block in logits.split(cuts):
        gathered.add(block)
    whole = CategoricalPredictive.from_logits(logits, design=design)
    parts = gathered.result()
    for name in ("", "entropy_", "expected_entropy_", "mutual_information_"):
        name = f"{name or 'mean_'}error"
        torch.testing.assert_close(getattr(parts, name), getattr(whole, name))
    scale = (whole.probs * (1 - whole.probs)).clamp(min=1e-4).sqrt()
    relative = (whole.mean_error / scale).max()
    assert gathered.relative_error() == pytest.approx(float(relative))
