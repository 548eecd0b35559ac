"""Pooling by shifted views gives torch's numbers, bit by bit."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from caveat import MCDropout
from caveat.sampling.rules import pooling


class Pooled(nn.Module):
    def __init__(self, *args, **options):
        super().__init__()
        self.pool = nn.MaxPool2d(*args, **options)
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x):
        pooled = self.pool(x)
        return pooled, F.dropout(pooled * self.weight, 0.5)


@pytest.mark.parametrize(
    ("args", "options"),
    [
        ((2,), {}),
        ((3,), {}),
        (((2, 3),), {}),
        ((2,), {"stride": 2}),
        (((1, 2),), {"stride": (1, 2)}),
        ((3,), {"stride": 1}),
        ((3,), {"stride": 2}),
        (((2, 3),), {"stride": (3, 2)}),
        ((2,), {"padding": 1}),
        ((2,), {"dilation": 2}),
        ((2,), {"ceil_mode": True}),
        ((4,), {}),
    ],
)
@pytest.mark.parametrize("channels_last", [False, True])
def test_values_are_those_of_torch(args, options, channels_last, monkeypatch):
    monkeypatch.setattr(pooling, "_FEW", 0)  # by views also where they do not pay
    x = torch.randn(3, 2, 9, 11)
    x[0, 0, 3, 4], x[1, 1, 2, 2] = -torch.inf, torch.inf
    if channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    expected = F.max_pool2d(x, *args, **options)
    found, _ = MCDropout(Pooled(*args, **options), seed=0).draws(x, n_draws=2)
    assert torch.equal(found[0], expected)
    assert torch.equal(found[1], expected)
