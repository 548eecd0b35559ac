"""Perceptrons as the fleet trains them, and LeNets as the papers do."""

from dataclasses import replace

import pytest
import torch

from caveat.papers.ensemble.choosing import STARTS
from caveat.papers.ensemble.networks import (
    LENET,
    MLP,
    Kind,
    NetworkJob,
    as_rows,
    perceptron,
)
from caveat.papers.lenet import NetJob, as_input
from caveat.papers.lenet.images import small_digits
from caveat.sampling import audit

RATES = [(0.0, 0.0, 0), (0.0, 0.1, 2), (0.1, 0.2, 3)]


@pytest.mark.parametrize(("early", "late", "n_sites"), RATES)
def test_a_perceptron_drops_where_the_fleet_does(early, late, n_sites):
    net = perceptron(Kind(MLP, early, late, 0.0))
    rates = [m.p for m in net if isinstance(m, torch.nn.Dropout)]
    assert rates == [r for r in (early, late, late) if r] and len(rates) == n_sites
    assert net(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    if n_sites:
        assert len(audit(net, torch.zeros(2, 1, 28, 28))) == n_sites


@pytest.mark.parametrize(("early", "late", "n_sites"), RATES)
def test_a_lenet_drops_behind_convolutions_and_units(early, late, n_sites):
    net = NetworkJob(Kind(LENET, early, late, 0.0), 1, 0, 64).run(small_digits())
    rates = [m.p for m in net if isinstance(m, torch.nn.Dropout)]
    assert rates == [r for r in (early, early, late) if r]


@pytest.mark.parametrize(
    ("kind", "length"), [(STARTS[MLP][1], 3), (STARTS[LENET][1], 60)]
)
def test_a_network_learns_and_is_the_same_again(kind, length):
    images = small_digits()
    job = NetworkJob(kind, length, seed=1, n_train=600)
    net, other = job.run(images), job.run(images)
    found, again = (n(as_input(images.test.image)).argmax(-1) for n in (net, other))
    assert torch.equal(found, again) and not net.training
    assert (found == images.test.label).double().mean() > 0.7


def test_the_released_lenet_is_one_of_these():
    """The same weights as the other reproductions train, by the released decay."""
    images = small_digits()
    kind = Kind(LENET, 0.5, 0.5, 2.5e-4)
    found = list(NetworkJob(kind, 4, seed=2).run(images).parameters())
    released = list(NetJob("everywhere", 4, 2).train(images).parameters())
    for mine, theirs in zip(found, released, strict=True):
        assert torch.equal(mine, theirs)
    other = NetworkJob(replace(kind, l2_penalty=0.1), 4, seed=2).run(images)
    assert not torch.equal(next(other.parameters()), found[0])


def test_rows_are_pixels_scaled_as_for_lenet():
    images = small_digits()
    rows = as_rows(images.test)
    assert rows.x.shape == (450, 784)
    torch.testing.assert_close(rows.x, as_input(images.test.image).flatten(1))


def test_kinds_say_what_they_are():
    assert str(Kind(MLP, 0.0, 0.0, 1e-4)) == "λ = 0.0001"
    assert str(Kind(MLP, 0.0, 0.1, 0.0)) == "drop rates 0 and 0.1, λ = 0"
