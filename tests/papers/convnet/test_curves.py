"""Points of a network and the growth of its features, by enumeration."""

import math

import pytest
import torch
from torch import nn

from caveat.papers.convnet.curves import STANDARD, curve, feature_growth
from caveat.papers.lenet import Labelled, NetJob
from caveat.papers.lenet.images import small_digits


def test_pooling_grows_by_the_expected_maximum():
    """Four equal numbers, each doubled or dropped: on average 2 (1 - 1/16)."""
    net = nn.Sequential(nn.Conv2d(1, 1, 1), nn.Dropout(0.5), nn.MaxPool2d(2)).eval()
    nn.init.ones_(net[0].weight)
    nn.init.zeros_(net[0].bias)
    flat = Labelled(torch.full((2, 28, 28), 128, dtype=torch.uint8), torch.zeros(2))
    (found,) = feature_growth(net, flat)
    variance = 4 * (15 / 16) * (1 / 16) / 20  # of a mean of 20 draws
    assert found == pytest.approx(math.sqrt(1.875**2 + variance), abs=0.05)


def test_curves_count_what_draws_change():
    job, test = NetJob("everywhere", 15, 0), small_digits().test.first(80)
    points = list(curve(job.train(small_digits()), job, test, (1, 4)))
    assert [p.n_draws for p in points] == [STANDARD, 1, 4]
    assert [p.n_groups for p in points] == [1, 4, 1]
    for point in points[1:]:
        change = 80 * (points[0].error - point.error)
        assert point.mended - point.broken == pytest.approx(change, abs=1e-3)
