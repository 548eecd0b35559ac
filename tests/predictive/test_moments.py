"""Moments: right, mergeable in any order, and stable."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from caveat.errors import InputTypeError, ShapeError
from caveat.predictive import Moments, merge
from caveat.predictive import moments as source
from tests.statistics import assert_mean_is, assert_variance_is

numbers = st.floats(-1e3, 1e3)
samples = st.lists(numbers, min_size=1, max_size=20).map(
    lambda values: torch.tensor(values, dtype=torch.float64).unsqueeze(1)
)


def assert_same(left: Moments, right: Moments) -> None:
    assert left.count == right.count
    assert_close(left.mean, right.mean, rtol=1e-9, atol=1e-9)
    assert_close(left.scatter, right.scatter, rtol=1e-9, atol=1e-6)


def test_identity_with_the_textbook():
    draws = torch.randn(50, 3, 2, dtype=torch.float64)
    moments = Moments.of(draws)
    assert moments.count == 50
    assert_close(moments.mean, draws.mean(0))
    assert_close(moments.variance, ((draws - draws.mean(0)) ** 2).sum(0) / 50)
    assert_close(moments.mean_error, draws.std(0, correction=1) / math.sqrt(50))


@given(samples, samples)
def test_merge_equals_all_at_once(a, b):
    assert_same(merge(Moments.of(a), Moments.of(b)), Moments.of(torch.cat([a, b])))


@given(samples, samples, samples)
def test_merge_is_associative_and_commutative(a, b, c):
    a, b, c = (Moments.of(x) for x in (a, b, c))
    assert_same(merge(merge(a, b), c), merge(a, merge(b, c)))
    assert_same(merge(a, b), merge(b, a))


@given(samples, st.integers(1, 25))
def test_blocks_are_invisible(draws, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "BLOCK", block)
        blocked = Moments.of(draws)
    assert_same(blocked, Moments.of(draws))


@pytest.mark.parametrize("block", [4, 100, 10_000])
def test_a_large_mean_costs_no_accuracy_in_float32(block, monkeypatch):
    """Four draws per block, mean/std = 1e5: float32 sums would be lost entirely."""
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(10_000, 1, generator=generator) + 1e5
    exact = draws.double()
    monkeypatch.setattr(source, "BLOCK", block)
    moments = Moments.of(draws)
    assert_close(moments.mean, exact.mean(0), rtol=1e-10, atol=0)
    assert_close(moments.variance, exact.var(0, correction=0), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_draws_are_summed_in_float32(dtype):
    generator = torch.Generator().manual_seed(0)
    draws = torch.randn(5000, 2, generator=generator).to(dtype)
    moments, exact = Moments.of(draws), draws.double()
    assert_close(moments.mean, exact.mean(0), rtol=0, atol=1e-6)
    assert_close(moments.variance, exact.var(0, correction=0), rtol=1e-5, atol=0)


def test_mean_error_is_the_spread_of_means():
    generator = torch.Generator().manual_seed(1)
    draws = torch.randn(25, 20_000, dtype=torch.float64, generator=generator)
    moments = Moments.of(draws)
    assert_mean_is(moments.mean_error.square(), 1 / 25)
    assert_variance_is(moments.mean, 1 / 25)


def test_the_error_of_a_single_draw_is_unknown():
    assert Moments.of(torch.ones(1, 3)).mean_error.isinf().all()


def test_no_gradient_is_carried():
    draws = torch.randn(3, 2, requires_grad=True)
    assert not Moments.of(draws).mean.requires_grad


def test_draws_are_not_written_to():
    draws = torch.randn(30, 4)
    before = draws.clone()
    Moments.of(draws)
    assert torch.equal(draws, before)


def test_errors():
    with pytest.raises(ShapeError, match="at least one draw"):
        Moments.of(torch.zeros(0, 3))
    with pytest.raises(InputTypeError, match="floating-point"):
        Moments.of(torch.zeros(3, 3, dtype=torch.int64))
    with pytest.raises(ShapeError, match=r"right.mean must have the shape"):
        merge(Moments.of(torch.zeros(3, 2)), Moments.of(torch.zeros(3, 1)))
