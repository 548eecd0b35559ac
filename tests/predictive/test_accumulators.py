"""Accumulators: blocks of draws are invisible in the result."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from caveat.errors import DrawsNotKeptError, ParameterError, ShapeError
from caveat.predictive import (
    CategoricalAccumulator,
    CategoricalPredictive,
    GaussianAccumulator,
    GaussianPredictive,
)
from tests.predictive.examples import ANSWERS, random_draws, random_logits

cuts = st.lists(st.integers(1, 6), min_size=1, max_size=6)


@settings(max_examples=30)
@given(st.integers(0, 10**6), cuts, st.booleans())
def test_gaussian_blocks_are_invisible(seed, sizes, keep):
    draws = random_draws(sum(sizes), 4, 3, seed=seed)
    gathered = GaussianAccumulator(precision=4.0, keep_draws=keep)
    for block in draws.split(sizes):
        gathered.add(block)
    result = gathered.result()
    whole = GaussianPredictive.from_draws(draws, precision=4.0)
    assert result.n_draws == len(draws)
    for name in ("mean", "variance", "covariance", "mean_error"):
        assert_close(getattr(result, name), getattr(whole, name))
    if keep:
        assert torch.equal(result.draws, draws)


@settings(max_examples=30)
@given(st.integers(0, 10**6), cuts, st.booleans())
def test_gaussian_blocks_with_a_precision_for_each_draw(seed, sizes, keep):
    draws, y = random_draws(sum(sizes), 4, 3, seed=seed), random_draws(4, 3, seed=1)
    tau = random_draws(sum(sizes), 4, 3, seed=seed + 1).exp()
    gathered = GaussianAccumulator(precision=None, keep_draws=keep)
    for block, own in zip(draws.split(sizes), tau.split(sizes), strict=True):
        gathered.add(block, own)
    result = gathered.result()
    whole = GaussianPredictive.from_draws(draws, precision=tau)
    for name in ("mean", "variance", "covariance", "precision"):
        assert_close(getattr(result, name), getattr(whole, name))
    error = (whole.mean_error / whole.std).max().item()
    assert gathered.relative_error() == pytest.approx(error)
    if keep:
        assert_close(result.log_prob(y), whole.log_prob(y))


def test_a_precision_is_given_once():
    draws = random_draws(3, 2, 1)
    for start, own in ((None, None), (4.0, torch.ones(3, 2, 1))):
        gathered = GaussianAccumulator(precision=start, keep_draws=True)
        with pytest.raises(ParameterError, match="precision must be given once"):
            gathered.add(draws, own)


@settings(max_examples=30)
@given(st.integers(0, 10**6), cuts, st.booleans())
def test_categorical_blocks_are_invisible(seed, sizes, keep):
    logits = random_logits(sum(sizes), 4, 3, seed=seed)
    gathered = CategoricalAccumulator(seed=seed, keep_draws=keep)
    for block in logits.split(sizes):
        gathered.add(block)
    result = gathered.result()
    whole = CategoricalPredictive.from_logits(logits, seed=seed)
    for name in ANSWERS:
        assert_close(getattr(result, name), getattr(whole, name), rtol=1e-9, atol=1e-9)
    if keep:
        assert torch.equal(result.draws, logits)


def test_rows_may_be_gathered_apart():
    """Common random numbers: a row does not depend on the rows beside it."""
    logits = random_logits(30, 6, 3)
    whole = CategoricalPredictive.from_logits(logits, seed=2)
    parts = []
    for rows in logits.split(2, dim=1):
        gathered = CategoricalAccumulator(seed=2, keep_draws=False)
        gathered.add(rows)
        parts.append(gathered.result())
    joined = CategoricalPredictive.concatenate(parts)
    assert torch.equal(joined.variation_ratio, whole.variation_ratio)


def test_relative_error_restated():
    draws = random_draws(50, 4, 3)
    gathered = GaussianAccumulator(precision=2.0, keep_draws=False)
    gathered.add(draws)
    error = draws.std(0, correction=1) / math.sqrt(50)
    std = (draws.var(0, correction=0) + 0.5).sqrt()
    assert gathered.relative_error() == pytest.approx((error / std).max().item())

    logits = random_logits(50, 4, 3) / 3
    counted = CategoricalAccumulator(seed=0, keep_draws=False)
    counted.add(logits)
    probs = logits.softmax(-1)
    error = probs.std(0, correction=1) / math.sqrt(50)
    scale = (probs.mean(0) * (1 - probs.mean(0))).sqrt()
    assert counted.relative_error() == pytest.approx((error / scale).max().item())


def test_relative_error_of_sure_and_of_few_draws():
    counted = CategoricalAccumulator(seed=0, keep_draws=False)
    gathered = GaussianAccumulator(precision=2.0, keep_draws=False)
    assert counted.relative_error() == gathered.relative_error() == math.inf
    counted.add(torch.tensor([[[500.0, 0.0]]]))
    gathered.add(torch.zeros(1, 1, 1))
    assert counted.relative_error() == gathered.relative_error() == math.inf
    counted.add(torch.tensor([[[400.0, 0.0]]]))
    gathered.add(torch.zeros(1, 1, 1))
    assert counted.relative_error() == gathered.relative_error() == 0


def test_relative_error_of_probabilities_is_at_most_one_over_root_draws():
    counted = CategoricalAccumulator(seed=0, keep_draws=False)
    counted.add(random_logits(101, 50, 4) * 10)
    assert counted.relative_error() <= 0.1 + 1e-12


def test_a_result_does_not_change_later():
    gathered = GaussianAccumulator(precision=1.0, keep_draws=True)
    gathered.add(torch.zeros(2, 3))
    early = gathered.result()
    gathered.add(torch.ones(2, 3))
    assert early.n_draws == 2 and early.mean.tolist() == [0.0] * 3
    assert gathered.result().mean.tolist() == [0.5] * 3


def test_blocks_made_in_inference_mode():
    gathered = GaussianAccumulator(precision=1.0, keep_draws=False)
    counted = CategoricalAccumulator(seed=0, keep_draws=True)
    with torch.inference_mode():
        gathered.add(torch.zeros(2, 3, 2))
        counted.add(torch.zeros(2, 3, 2))
    gathered.add(torch.ones(2, 3, 2))
    counted.add(torch.ones(2, 3, 2))
    assert gathered.result().mean.tolist() == [[0.5, 0.5]] * 3
    assert counted.result().n_draws == 4


def test_errors():
    gathered = GaussianAccumulator(precision=torch.ones(2), keep_draws=False)
    with pytest.raises(ParameterError, match="before the first draws"):
        gathered.result()
    with pytest.raises(ShapeError, match="precision must broadcast"):
        gathered.add(torch.zeros(2, 4, 3))
    gathered.add(torch.zeros(2, 4, 2))
    with pytest.raises(ShapeError, match=r"\(draws, 4, 2\). Got \(2, 5, 2\)"):
        gathered.add(torch.zeros(2, 5, 2))
    with pytest.raises(ParameterError, match="1 of 3 draws and 4 of 4 rows"):
        gathered.add(torch.tensor([0, math.nan, 0]).reshape(3, 1, 1).expand(3, 4, 2))
    with pytest.raises(ParameterError, match="precision"):
        GaussianAccumulator(precision=-1.0, keep_draws=False)
    counted = CategoricalAccumulator(seed=0, keep_draws=False)
    counted.add(torch.zeros(2, 4, 2))
    with pytest.raises(ShapeError, match="one accumulator per batch of rows"):
        counted.add(torch.zeros(2, 4, 3))
    with pytest.raises(
        DrawsNotKeptError, match=r"keep_draws=True to MCDropout.classify"
    ):
        _ = counted.result().draws
