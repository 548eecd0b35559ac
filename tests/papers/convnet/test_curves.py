"""Points of a network and the growth of its features, by enumeration."""

import math

import pytest
import torch
from torch import nn

from caveat.papers.convnet.curves import STANDARD, curve, feature_growth
from caveat.papers.lenet import Labelled, NetJob
from caveat.papers.lenet.images import small_digits
from caveat.papers.lenet.predictions import standard_log_probs


def test_pooling_grows_by_the_expected_maximum():
    """Four equal numbers, each doubled or dropped: on average 2 (1 - 1/16)."""
    net = nn.Sequential(nn.Conv2d(1, 1, 1), nn.Dropout(0.5), nn.MaxPool2d(2)).eval()
    nn.init.ones_(net[0].weight)
    nn.init.zeros_(net[0].bias)
    flat = Labelled(torch.full((2, 28, 28), 128, dtype=torch.uint8), torch.zeros(2))
    (found,) = feature_growth(net, flat)
    variance = 4 * (15 / 16) * (1 / 16) / 20  # of a mean of 20 draws
    assert found == pytest.approx(math.sqrt(1.875**2 + variance), abs=0.05)


def test_curves_name_the_wrong_images():
    job, test = NetJob("everywhere", 15, 0), small_digits().test.first(80)
    points = list(curve(job.train(small_digits()), job, test, (1, 4)))
    assert [p.n_draws for p in points] == [STANDARD, 1, 4]
    assert [p.n_groups for p in points] == [1, 4, 1]
    assert points[1].wrong == ""  # several groups
    for point in (points[0], points[2]):
        wrong = [int(number) for number in point.wrong.split()]
        assert len(set(wrong)) == round(80 * point.error)
    standard = standard_log_probs(job.train(small_digits()), test.image)
    assert [int(n) for n in points[0].wrong.split()] == [
        n for n in range(80) if standard[n].argmax() != test.label[n]
    ]
