"""The layers and the first weights of the released LeNets."""

import pytest
import torch
from torch import nn

from caveat.papers.lenet import DROPOUT, make_lenet
from tests.statistics import assert_mean_is


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("dropout", "places"), [("none", []), ("end", [7]), ("everywhere", [1, 4, 9])]
)
def test_layers_are_those_of_the_released_files(dropout, places):
    net = make_lenet(dropout, generator())
    assert [k for k, m in enumerate(net) if isinstance(m, nn.Dropout)] == places
    assert all(net[k].p == 0.5 for k in places)
    assert sum(isinstance(m, nn.ReLU) for m in net) == 1
    assert sum(p.numel() for p in net.parameters()) == 431_080  # as Caffe's LeNet
    assert net(torch.zeros(3, 1, 28, 28)).shape == (3, 10)
    for place in places[:-1]:  # dropped before the pooling, not after
        assert isinstance(net[place + 1], nn.MaxPool2d)


def test_first_weights_are_caffes_and_the_same_wherever_dropout_is():
    nets = [make_lenet(dropout, generator(3)) for dropout in DROPOUT]
    first, *others = [list(net.parameters()) for net in nets]
    for other in others:
        assert all(torch.equal(a, b) for a, b in zip(first, other, strict=True))
    for weight, fan_in in ((first[2], 500), (first[4], 800)):
        assert weight.abs().max() <= (3 / fan_in) ** 0.5
        variances = weight.detach().flatten().square()
        assert_mean_is(variances, torch.tensor(1 / fan_in))
    assert all(not p.any() for p in first[1::2])
