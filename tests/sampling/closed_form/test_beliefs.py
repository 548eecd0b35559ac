"""Products with noise, and covariances through changes of shape and scale."""

import pytest
import torch

from caveat.sampling.closed_form.beliefs import (
    Correlated,
    Independent,
    NotSupportedError,
)
from tests.sampling.closed_form.nets import assert_same, enumerated, masks, numbers

MEAN, SPREAD = numbers(2, 3), numbers(2, 3, seed=1).square()


def noise(rate: float = 0.4, *, source: int = 1) -> Independent:
    mean = torch.ones(1, 3).double()
    spread = torch.full((1, 3), rate / (1 - rate), dtype=torch.float64)
    return Independent(mean, frozenset({source}), True, spread, apart=True)


def value() -> Independent:
    return Independent(MEAN, frozenset({0}), True, SPREAD, apart=True)


def test_product_with_noise():
    """E86: a value that is MEAN plus or minus sqrt(SPREAD), times a mask."""
    signs = [(mask - 1.0, chance) for mask, chance in masks(0.5, 3)]
    mean, covariance = enumerated(
        lambda s, m: (MEAN + s * SPREAD.sqrt()) * m, signs, masks(0.4, 3)
    )
    for kind in (value(), Correlated.of(value())):
        found = kind.times(noise())
        assert found.exact
        assert found.sources == {0, 1}
        assert_same(found.mean, mean)
        assert_same(found.variance, covariance.diagonal(dim1=1, dim2=2))


def test_the_same_noise_twice():
    with pytest.raises(NotSupportedError, match="the same noise"):
        value().times(noise(source=0))


def test_covariance_follows_shape_and_scale():
    weight = numbers(4, 3, seed=2)
    factor = torch.tensor([1.0, -2.0, 0.5, 3.0]).double()
    whole = weight @ torch.diag_embed(SPREAD) @ weight.t()
    for kind in (value(), Correlated.of(value())):
        found = kind.linear(weight, None).scaled(factor).shifted(1.0)
        found = found.reshaped(lambda t: t.reshape(2, 2, 2))
        assert_same(found.covariance(), whole * factor[:, None] * factor)
        assert_same(found.variance.flatten(1), found.covariance().diagonal(0, 1, 2))


def test_another_order_forgets_the_covariance():
    found = value().linear(numbers(4, 3, seed=2), None)
    turned = found.reshaped(lambda t: t.reshape(2, 2, 2).transpose(1, 2))
    assert turned.covariance() is None
    with pytest.raises(NotSupportedError, match="another order"):
        Correlated.of(value()).reshaped(lambda t: t.flip(1))
