"""Arithmetic with constants, and layers that are linear: exact by enumeration."""

import pytest
import torch
from torch import nn

from caveat import MCDropout
from caveat.sampling.closed_form.rules import rule_of
from tests.sampling.closed_form.nets import (
    assert_same,
    enumerated,
    masks,
    numbers,
    seeded,
)

AFFINE = {
    "plus": lambda y: y + 2.0,
    "from": lambda y: 3.0 - y,
    "minus": lambda y: y - torch.arange(2.0, dtype=y.dtype),
    "times": lambda y: 2.5 * y,
    "over": lambda y: y / torch.tensor([2.0, -4.0], dtype=y.dtype),
    "negative": lambda y: -y,
    "in another shape": lambda y: y.unsqueeze(1).reshape(-1, 2, 1).squeeze(-1),
}


class Ending(nn.Module):
    def __init__(self, end):
        super().__init__()
        self.drop, self.layer, self.end = nn.Dropout(0.4), nn.Linear(3, 2), end

    def forward(self, x):
        return self.end(self.layer(self.drop(x)))


@pytest.mark.parametrize("name", AFFINE)
def test_affine_endings(name):
    model, x = seeded(lambda: Ending(AFFINE[name])), numbers(3, 3)
    found = MCDropout(model).moments(x)
    mean, covariance = enumerated(
        lambda m: model.end(model.layer(x * m)), masks(0.4, 3)
    )
    assert found.exact
    assert_same(found.mean, mean)
    assert_same(found.covariance, covariance)
    regressed = MCDropout(model, seed=0).regress(x, n_draws=2, precision=4.0)
    assert regressed.exact
    assert_same(regressed.mean, mean)


def test_batch_normalisation():
    model = seeded(
        lambda: nn.Sequential(nn.Dropout(0.4), nn.Linear(3, 2), nn.BatchNorm1d(2))
    )
    model[2].running_mean.add_(0.3)
    model[2].running_var.mul_(2.0)
    x = numbers(3, 3)
    found = MCDropout(model).moments(x)
    mean, covariance = enumerated(lambda m: model[1:](x * m), masks(0.4, 3))
    assert_same(found.mean, mean)
    assert_same(found.covariance, covariance)


def test_operations_without_a_rule():
    assert rule_of(torch.ops.aten.gelu.default) is None
    assert rule_of(print) is None
