"""Conformal predictives: intervals of any level, and all else as it was."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from caveat.decisions import AdaptiveSets, Coverage, QuantileResidual, conformal, defer
from caveat.errors import InputTypeError, NoAnswerError, ParameterError
from caveat.evaluation import coverage, crps, evaluate, log_likelihood, rmse
from caveat.predictive import CategoricalPredictive, GaussianPredictive, Predictive

SCORES = [None, QuantileResidual(0.5)]


def mixture(x: np.ndarray, seed: int = 0) -> GaussianPredictive:
    """Biased and too sure."""
    generator = torch.Generator().manual_seed(seed)
    noise = 0.3 * torch.randn(8, 1, generator=generator, dtype=torch.float64)
    draws = 0.5 + 0.8 * torch.tensor(x) + noise * torch.tensor(1 + np.abs(x))
    return GaussianPredictive.from_draws(draws, precision=25.0)


def outcome(x: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return x + generator.gamma(2.0, size=x.shape) * (0.2 + np.abs(x))


def rows(number: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=number)
    return x, outcome(x, generator)


@pytest.mark.parametrize("score", SCORES)
def test_one_calibration_serves_every_level(score):
    x, y = rows(99)
    new = mixture(rows(5, 1)[0])
    found = conformal(mixture(x), y, level=0.6, score=score).apply(new)
    for level in (0.03, 0.5, 0.9, 0.99):
        own = conformal(mixture(x), y, level=level, score=score).interval(new)
        for tensor, array in zip(found.interval(level), own, strict=True):
            np.testing.assert_allclose(tensor, array, rtol=1e-12)
    with pytest.raises(ParameterError, match=r"at least 999 calibration rows. Got 99"):
        found.interval(0.999)
    with pytest.raises(ParameterError, match="calibration rows"):
        found.quantile(0.999)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("level", [0.5, 0.9])
def test_coverage_is_the_level_over_many_data_sets(score, level):
    """Counted by ``coverage``, as for any predictive; exact is ceil(50 L)/50."""
    shares = []
    for seed in range(150):
        x, y = rows(49 + 40, seed)
        found = conformal(mixture(x[:49]), y[:49], score=score)
        new = found.apply(mixture(x[49:]))
        shares.append(coverage(new, y[49:], level=level).value)
    error = np.std(shares, ddof=1) / math.sqrt(len(shares))
    assert abs(np.mean(shares) - math.ceil(50 * level) / 50) < 5 * error


@pytest.mark.parametrize("score", SCORES)
def test_cdf_is_uniform_over_many_data_sets(score):
    """Distance from the median by cdf: a new row has each rank with 1/(n + 1)."""
    below = []
    for seed in range(400):
        x, y = rows(9 + 1, seed)
        new = conformal(mixture(x[:9]), y[:9], level=0.5, score=score).apply(
            mixture(x[9:])
        )
        below.append(float(new.cdf(torch.tensor(y[9:]))))
    depth = np.abs(2 * np.array(below) - 1)
    counts = np.bincount(np.round(10 * depth).astype(int), minlength=10)
    assert counts.sum() == 400 and len(counts) == 10
    assert (np.abs(counts - 40) < 5 * math.sqrt(400 * 0.1 * 0.9)).all()


def test_inside_agrees_with_the_interval_where_the_rank_is_whole():
    """99 rows and 90 %: rank 90 of 100, where a cdf would be one row off."""
    x, y = rows(99)
    found = conformal(mixture(x), y).apply(mixture(x))
    lower, upper = found.interval(0.9)
    inside = found.inside(torch.tensor(y), 0.9)
    expected = (lower.numpy() <= y + 1e-12) & (y - 1e-12 <= upper.numpy())
    assert int(inside.sum()) == 90
    assert np.array_equal(inside, expected)


def test_everything_else_is_that_of_the_wrapped():
    x, y = rows(60)
    new_x, new_y = rows(40, 1)
    new = mixture(new_x)
    found = conformal(mixture(x), y).apply(new)
    assert isinstance(found, Predictive) and found.n_draws == new.n_draws == 8
    for metric in (rmse, log_likelihood, crps):
        assert metric(found, new_y) == metric(new, new_y)
    assert torch.equal(found.sample(5, seed=1), new.sample(5, seed=1))
    assert torch.equal(found.draws, new.draws)
    assert_close(found.std, new.std)
    report = evaluate(found, new_y)
    assert report["coverage of 90% intervals"].value > 0.75
    assert evaluate(new, new_y)["coverage of 90% intervals"].value < 0.7
    assert "intervals from 60 calibration rows" in repr(found)


def test_other_units():
    """The calibration goes with the units: the same as calibrating in them."""
    x, y = rows(60)
    new = mixture(rows(5, 1)[0])
    for score in SCORES:
        found = conformal(mixture(x), y, score=score).apply(new).rescale(-3.0, 2.0)
        known = mixture(x).rescale(-3.0, 2.0)
        own = conformal(known, 2.0 - 3.0 * y, score=score)
        again = own.apply(new.rescale(-3.0, 2.0))
        for a, b in zip(found.interval(0.8), again.interval(0.8), strict=True):
            assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_another_noise_needs_another_calibration():
    x, y = rows(60)
    found = conformal(mixture(x), y).apply(mixture(x))
    with pytest.raises(NoAnswerError, match="then call conformal"):
        found.with_precision(1.0)


def classifier(rows: int, seed: int) -> CategoricalPredictive:
    generator = torch.Generator().manual_seed(seed)
    return CategoricalPredictive.from_logits(
        2 * torch.randn(6, rows, 3, generator=generator, dtype=torch.float64)
    )


@pytest.mark.parametrize("score", [None, AdaptiveSets(), AdaptiveSets(seed=2)])
def test_sets_are_those_of_the_rule(score):
    known, new = classifier(50, 0), classifier(20, 1)
    y = known.sample(1, seed=0)[0]
    rule = conformal(known, y, level=0.8, score=score)
    found = rule.apply(new)
    np.testing.assert_array_equal(found.sets, rule.sets(new))
    assert torch.equal(found.probs, new.probs)
    assert torch.equal(found.mutual_information, new.mutual_information)
    labels = new.sample(1, seed=1)[0]
    assert evaluate(found, labels)["accuracy"] == evaluate(new, labels)["accuracy"]
    policy = defer(found, labels, target=Coverage(0.5))
    assert policy.coverage >= 0.5
    assert "sets of level 0.8" in repr(found)


def test_the_other_side_is_refused():
    x, y = rows(60)
    intervals = conformal(mixture(x), y)
    with pytest.raises(InputTypeError, match="regression"):
        intervals.apply(classifier(5, 0))
